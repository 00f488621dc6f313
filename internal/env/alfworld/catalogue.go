package alfworld

import (
	"strconv"
	"strings"
	"sync"
)

// objectClass is what generated games know about a class of objects.
type objectClass struct {
	name  string
	props string             // letters: h heatable, c coolable, w washable, s sliceable, v vessel, - fixed in place, t can be switched on
	homes map[string]float64 // receptacle class -> how often it is found there; 0: it fits but is put there by people only
}

func (o *objectClass) is(letter string) bool { return strings.Contains(o.props, letter) }

// catalogue is the parsed table of classes. It never changes.
type catalogue struct {
	objects []objectClass
	byName  map[string]*objectClass // lower case
}

// household returns the catalogue, parsed on first use.
var household = sync.OnceValue(func() *catalogue {
	c := &catalogue{byName: map[string]*objectClass{}}
	for _, line := range strings.Split(strings.TrimSpace(objectTable), "\n") {
		head, homes, _ := strings.Cut(line, ":")
		words := strings.Fields(head)
		o := objectClass{name: words[0], homes: map[string]float64{}}
		if len(words) > 1 {
			o.props = words[1]
		}
		for _, h := range strings.Fields(homes) {
			place, weight, _ := strings.Cut(h, "=")
			o.homes[place], _ = strconv.ParseFloat(weight, 64)
		}
		c.objects = append(c.objects, o)
	}
	for i := range c.objects {
		c.byName[strings.ToLower(c.objects[i].name)] = &c.objects[i]
	}
	return c
})

// prior is how likely an object of a class is in a receptacle of a class, as a weight; classes as in names. What the
// catalogue does not know is as likely anywhere.
func prior(object, place string) float64 {
	o := household().byName[object]
	if o == nil {
		return 1
	}
	for p, w := range o.homes {
		if strings.EqualFold(p, place) {
			return w + 0.3
		}
	}
	return 0.05
}

// openable reports whether receptacles of a class have a door or a lid.
func openableClass(place string) bool {
	switch place {
	case "Fridge", "Cabinet", "Microwave", "Drawer", "Safe":
		return true
	}
	return false
}

// The classes of movable things and where they are found, then lamps.
const objectTable = `
Apple hcws: CounterTop=4 Fridge=4 Microwave=1 GarbageCan=1 SinkBasin=1 DiningTable=2 SideTable=0
Bread hcs: CounterTop=6 DiningTable=3 Fridge=2 Microwave=0 GarbageCan=0 SideTable=0
Egg hcws: CounterTop=3 Fridge=4 SinkBasin=1 GarbageCan=1 Microwave=1 DiningTable=1
Lettuce cws: CounterTop=4 DiningTable=2 Fridge=3 SinkBasin=1 GarbageCan=0 SideTable=0
Potato hcws: CounterTop=3 Fridge=3 DiningTable=1 Microwave=1 GarbageCan=1 SinkBasin=1
Tomato hcws: CounterTop=4 Fridge=4 DiningTable=2 GarbageCan=1 SinkBasin=1 Microwave=0 SideTable=0
Bowl cwv: Cabinet=5 CounterTop=3 Fridge=2 DiningTable=2 Shelf=2 Desk=1 SinkBasin=1 Dresser=0 CoffeeTable=1 Microwave=0 SideTable=0
Cup hcwv: CounterTop=3 Cabinet=3 Fridge=2 DiningTable=2 SinkBasin=1 Shelf=1 Microwave=1 SideTable=1
Mug hcwv: CounterTop=4 Cabinet=3 CoffeeMachine=2 Fridge=2 Microwave=1 DiningTable=1 Desk=2 SinkBasin=1 Shelf=1 Dresser=0 SideTable=1
Plate hcwv: Cabinet=5 CounterTop=4 DiningTable=3 Fridge=1 SinkBasin=1 Microwave=0 Shelf=0 CoffeeTable=1 SideTable=0
Pan cwv: StoveBurner=5 CounterTop=4 Cabinet=2 DiningTable=1 Fridge=1 SinkBasin=0
Pot cwv: StoveBurner=6 CounterTop=2 Cabinet=1 DiningTable=1 Fridge=1 SinkBasin=1 Shelf=0
Kettle w: StoveBurner=3 Cabinet=2 CounterTop=2 DiningTable=1 SinkBasin=1 Shelf=0
WineBottle c: CounterTop=3 Cabinet=2 DiningTable=1 Fridge=1 GarbageCan=1 Shelf=0
Fork w: CounterTop=3 Drawer=3 DiningTable=2 SinkBasin=1 SideTable=0
Spoon w: CounterTop=3 Drawer=3 DiningTable=2 SinkBasin=1 SideTable=0
Knife w: CounterTop=4 Drawer=2 DiningTable=2 SinkBasin=1 SideTable=0
ButterKnife w: CounterTop=4 Drawer=1 DiningTable=2 SinkBasin=1 SideTable=0
Spatula w: CounterTop=3 Drawer=3 DiningTable=1 SinkBasin=1 SideTable=0
Ladle w: CounterTop=2 Drawer=2 Cabinet=2 DiningTable=1 SinkBasin=1
DishSponge w: CounterTop=3 Cabinet=2 Drawer=2 DiningTable=1 SinkBasin=1 GarbageCan=1 Shelf=1 Cart=1 BathtubBasin=1 Toilet=0
SaltShaker: CounterTop=3 Cabinet=3 Drawer=2 DiningTable=2 Shelf=1 SideTable=0
PepperShaker: CounterTop=3 Cabinet=3 Drawer=2 DiningTable=2 Shelf=1 SideTable=0
SoapBottle: CounterTop=4 Cabinet=3 DiningTable=1 GarbageCan=1 Shelf=1 Toilet=2 Drawer=1 Cart=1 Dresser=0
Cloth w: BathtubBasin=3 Drawer=2 CounterTop=2 Cabinet=1 Cart=1 Shelf=1 Toilet=1 LaundryHamper=0 GarbageCan=0 ArmChair=0 Dresser=0 SinkBasin=0 Desk=0
SoapBar w: CounterTop=2 BathtubBasin=2 Toilet=2 Drawer=1 SinkBasin=1 Cabinet=1 GarbageCan=1 Shelf=1 Cart=1
ToiletPaper: CounterTop=2 Drawer=2 Toilet=2 Shelf=1 GarbageCan=1 Cabinet=1 Cart=1 ToiletPaperHanger=1 Dresser=0
SprayBottle: CounterTop=3 Toilet=2 Shelf=2 Cart=1 Cabinet=1 DiningTable=1 GarbageCan=1 SideTable=1 Drawer=0 Dresser=0
Candle: CounterTop=3 Toilet=2 Drawer=1 Shelf=2 SideTable=1 CoffeeTable=1 Cart=1 Cabinet=1 Dresser=1 DiningTable=0
TissueBox: CoffeeTable=2 Drawer=1 DiningTable=1 Shelf=2 SideTable=2 CounterTop=1 Desk=1 Toilet=1 GarbageCan=0 Cart=1 Dresser=0 TVStand=1
HandTowel: HandTowelHolder=8 CounterTop=1 BathtubBasin=0 Cabinet=0 Drawer=0 GarbageCan=0 Shelf=1 SinkBasin=0 Toilet=0 Cart=0
Towel: TowelHolder=1
Pen: Desk=4 Shelf=3 Drawer=3 Dresser=2 SideTable=2 DiningTable=1 CoffeeTable=1 GarbageCan=1 CounterTop=1
Pencil: Desk=4 Drawer=3 Dresser=2 SideTable=2 Shelf=2 GarbageCan=1 CounterTop=1 CoffeeTable=1 DiningTable=0
CreditCard: Drawer=4 Shelf=2 SideTable=2 Desk=2 Dresser=2 ArmChair=1 CounterTop=1 Sofa=1 CoffeeTable=1 Safe=1 Ottoman=1 DiningTable=1
CellPhone: Drawer=3 Bed=3 Desk=2 Dresser=2 SideTable=2 CounterTop=1 Shelf=1 DiningTable=1 Sofa=1 ArmChair=1 CoffeeTable=1 Safe=1
KeyChain: Drawer=2 Desk=2 SideTable=2 Shelf=2 Dresser=2 Sofa=1 CoffeeTable=1 ArmChair=1 Safe=1 Ottoman=1 DiningTable=1
CD: Drawer=3 Dresser=2 Desk=2 GarbageCan=1 SideTable=1 Shelf=1 Cabinet=1 Safe=1 DiningTable=0
Book: Bed=3 Drawer=2 Desk=2 CounterTop=1 Dresser=1 Cabinet=1 DiningTable=1 CoffeeTable=1 Sofa=1 Shelf=1 SideTable=1 ArmChair=0
Laptop: Bed=4 Desk=2 CoffeeTable=2 DiningTable=1 Sofa=2 Dresser=1 SideTable=1 Ottoman=1 ArmChair=1
AlarmClock: Desk=3 Shelf=2 Dresser=2 SideTable=2 DiningTable=0
Pillow: Bed=4 Sofa=3 ArmChair=2 Ottoman=1
RemoteControl: CoffeeTable=3 Sofa=3 Drawer=1 SideTable=2 Desk=1 DiningTable=1 TVStand=2 Dresser=1 ArmChair=1 Ottoman=1 Shelf=0
Statue: Shelf=4 CounterTop=1 DiningTable=2 SideTable=2 CoffeeTable=2 Dresser=1 TVStand=1 Desk=1
Vase: Shelf=4 CounterTop=1 Cabinet=1 DiningTable=2 CoffeeTable=2 SideTable=1 Dresser=1 TVStand=1 Desk=0
Watch: CoffeeTable=2 Drawer=2 SideTable=2 TVStand=1 Dresser=1 DiningTable=1 Shelf=1 Desk=0
Newspaper: DiningTable=2 Dresser=1 CoffeeTable=2 SideTable=1 ArmChair=1 Sofa=2 Drawer=1 Ottoman=1 GarbageCan=1 Shelf=0 Cabinet=0
Box v: DiningTable=2 Sofa=2 CoffeeTable=2 Dresser=1 Desk=1 Shelf=1 ArmChair=1 Ottoman=1 SideTable=0 Cabinet=0
BaseballBat: Bed=2 DiningTable=0 SideTable=0
BasketBall: Bed=2 Desk=1 Dresser=1 DiningTable=0 SideTable=0
DeskLamp -t: Desk=4 SideTable=3 Dresser=2 Shelf=1 CoffeeTable=1
`
