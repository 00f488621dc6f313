package alfworld

// furniture is a class of receptacles in a room: how many there are, and in which of the four templates of the room.
// The last template is kept for unseen tests.
type furniture struct {
	class     string
	low, high int
	templates string
}

const reservedTemplate = "3"

// room is a kind of room with what stands in it and the fixtures that are of no use.
type room struct {
	name     string
	items    []furniture
	fixtures []furniture
}

func rooms() map[string]room {
	return map[string]room{
		"kitchen": {"kitchen", []furniture{
			{"Fridge", 1, 1, "0123"}, {"Microwave", 1, 1, "0123"}, {"SinkBasin", 1, 1, "0123"}, {"CounterTop", 1, 3, "0123"},
			{"CoffeeMachine", 1, 1, "0123"}, {"Toaster", 1, 1, "012"}, {"GarbageCan", 1, 1, "0123"}, {"StoveBurner", 4, 4, "012"},
			{"StoveBurner", 4, 6, "3"}, {"Cabinet", 4, 9, "01"}, {"Cabinet", 8, 16, "2"}, {"Cabinet", 6, 12, "3"},
			{"Drawer", 2, 6, "02"}, {"Drawer", 3, 8, "1"}, {"Drawer", 3, 7, "3"}, {"DiningTable", 1, 2, "013"},
			{"Shelf", 1, 3, "23"}, {"SideTable", 1, 1, "3"},
		}, []furniture{{"StoveKnob", 4, 4, "0123"}, {"Window", 1, 2, "0123"}, {"Chair", 0, 3, "0123"}, {"LightSwitch", 1, 1, "0123"}, {"Blinds", 0, 1, "0123"}}},
		"livingroom": {"livingroom", []furniture{
			{"Sofa", 1, 1, "0123"}, {"ArmChair", 1, 2, "0123"}, {"CoffeeTable", 1, 2, "0123"}, {"SideTable", 1, 3, "0123"},
			{"GarbageCan", 1, 1, "0123"}, {"Drawer", 2, 6, "02"}, {"Shelf", 2, 6, "13"}, {"DiningTable", 1, 1, "13"}, {"Dresser", 1, 1, "02"},
			{"TVStand", 1, 1, "12"}, {"Cabinet", 2, 5, "23"}, {"Ottoman", 1, 1, "3"}, {"Desk", 1, 1, "23"}, {"Drawer", 4, 8, "3"},
		}, []furniture{{"Window", 1, 3, "0123"}, {"Painting", 0, 2, "0123"}, {"Chair", 0, 2, "0123"}, {"LightSwitch", 1, 1, "0123"}, {"Television", 1, 1, "0123"}, {"HousePlant", 0, 2, "0123"}, {"FloorLamp", 1, 1, "0123"}, {"Curtains", 0, 1, "0123"}}},
		"bedroom": {"bedroom", []furniture{
			{"Bed", 1, 1, "0123"}, {"Desk", 1, 1, "0123"}, {"Drawer", 3, 7, "01"}, {"Drawer", 5, 10, "23"}, {"SideTable", 1, 2, "023"},
			{"Dresser", 1, 1, "13"}, {"Shelf", 1, 5, "02"}, {"Shelf", 3, 8, "13"}, {"GarbageCan", 1, 1, "0123"}, {"ArmChair", 1, 1, "1"},
			{"Safe", 1, 1, "23"}, {"LaundryHamper", 1, 1, "03"},
		}, []furniture{{"Window", 1, 2, "0123"}, {"Chair", 1, 1, "0123"}, {"LightSwitch", 1, 1, "0123"}, {"Blinds", 0, 2, "0123"}, {"Mirror", 0, 1, "0123"}, {"Poster", 0, 2, "0123"}}},
		"bathroom": {"bathroom", []furniture{
			{"Toilet", 1, 1, "0123"}, {"SinkBasin", 1, 2, "0123"}, {"CounterTop", 1, 1, "0123"}, {"BathtubBasin", 1, 1, "013"},
			{"GarbageCan", 1, 1, "0123"}, {"TowelHolder", 1, 2, "0123"}, {"HandTowelHolder", 1, 2, "0123"}, {"ToiletPaperHanger", 1, 1, "0123"},
			{"Cabinet", 2, 6, "02"}, {"Drawer", 2, 6, "13"}, {"Shelf", 1, 3, "23"}, {"Cart", 1, 1, "3"},
		}, []furniture{{"Mirror", 1, 1, "0123"}, {"LightSwitch", 1, 1, "0123"}, {"Window", 0, 1, "0123"}, {"ShowerDoor", 0, 1, "0123"}, {"Painting", 0, 1, "0123"}}},
	}
}

// roomsFor lists the rooms in which a task type makes sense.
func roomsFor(kind string) []string {
	switch kind {
	case Heat, Cool:
		return []string{"kitchen"}
	case Clean:
		return []string{"kitchen", "kitchen", "bathroom"}
	case Look:
		return []string{"bedroom", "livingroom"}
	}
	return []string{"kitchen", "kitchen", "livingroom", "bedroom", "bathroom"}
}
