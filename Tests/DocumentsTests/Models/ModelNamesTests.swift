import Testing

@testable import Documents

@Suite struct ModelNamesTests {
    @Test(arguments: [
        ("List", "lists"), ("TodoItem", "todoItems"), ("Player", "players"),
        ("Category", "categories"), ("Day", "days"), ("Address", "addresses"), ("Box", "boxes"),
        ("Match", "matches"), ("Wish", "wishes"), ("Quiz", "quizzes"), ("Status", "statuses"),
        ("SalesPerson", "salesPeople"), ("Child", "children"), ("BreakingNews", "breakingNews"),
        ("Leaf", "leaves"), ("Knife", "knives"), ("Shelf", "shelves"), ("Analysis", "analyses"),
        ("Index", "indices"), ("Bus", "buses"), ("Hero", "heroes"), ("Photo", "photos"),
        ("Staff", "staffs"), ("GameData", "gameData"), ("Roof", "roofs"),
        ("UserStatus", "userStatuses"),
        ("URL", "uRLs"), ("X", "xes"), ("", ""),
    ]) func collections(_ type: String, _ collection: String) {
        #expect(ModelNames.collection(ofType: type) == collection)
    }

    @Test(arguments: [
        ("list", false, "listId"), ("todos", true, "todoIds"),
        ("sentMessages", true, "sentMessageIds"), ("categories", true, "categoryIds"),
        ("addresses", true, "addressIds"), ("boxes", true, "boxIds"), ("people", true, "personIds"),
        ("houses", true, "houseIds"), ("statuses", true, "statusIds"), ("staff", true, "staffIds"),
        ("indices", true, "indexIds"), ("knives", true, "knifeIds"), ("gloves", true, "gloveIds"),
        ("menus", true, "menuIds"), ("status", false, "statusId"), ("bus", false, "busId"),
        ("basis", false, "basisId"), ("news", false, "newsId"), ("players", false, "playerId"),
        ("wolves", true, "wolfIds"), ("caches", true, "cacheIds"),
        ("glass", true, "glassIds"), ("movies", true, "movieIds"), ("address", false, "addressId"),
    ]) func relationships(_ name: String, _ isToMany: Bool, _ field: String) {
        #expect(ModelNames.field(ofRelationship: name, isToMany: isToMany) == field)
    }

    @Test(arguments: [
        "list", "category", "day", "address", "box", "match", "dish", "status", "house", "person",
        "todoItem", "response", "salesPerson", "leaf", "knife", "shelf", "analysis",
        "index", "bus", "virus", "photo", "movie", "database", "company", "race", "purchase",
        "hive",
        "crisis", "wife", "half", "medium", "userStatus", "canvas", "key", "quiz", "exercise",
    ]) func singularsOfPlurals(_ word: String) {
        #expect(EnglishPlural.singular(of: EnglishPlural.plural(of: word)) == word)
    }
}
