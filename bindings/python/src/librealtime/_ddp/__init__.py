"""The client of Meteor servers."""
