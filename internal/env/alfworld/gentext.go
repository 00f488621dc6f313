package alfworld

import "strings"

// The rule texts of generated games: the semantics of env-alfworld.md 4 and 7.1 with the observable texts of 4.5.

const genDomain = `; household rules of generated games
(define (domain household)
(:requirements :adl :typing :action-costs)
(:types agent location receptacle object rtype otype)
(:predicates
 (atLocation ?a - agent ?l - location) (receptacleAtLocation ?r - receptacle ?l - location)
 (objectAtLocation ?o - object ?l - location) (inReceptacle ?o - object ?r - receptacle)
 (inReceptacleObject ?inner - object ?outer - object) (isReceptacleObject ?o - object)
 (receptacleType ?r - receptacle ?t - rtype) (objectType ?o - object ?t - otype) (canContain ?rt - rtype ?ot - otype)
 (openable ?r - receptacle) (opened ?r - receptacle) (checked ?x - object)
 (holds ?a - agent ?o - object) (holdsAny ?a - agent) (pickupable ?o - object)
 (cleanable ?o - object) (isClean ?o - object) (heatable ?o - object) (isHot ?o - object)
 (coolable ?o - object) (isCool ?o - object) (toggleable ?o - object) (isOn ?o - object) (isToggled ?o - object)
 (sliceable ?o - object) (isSliced ?o - object))
(:action look :parameters (?a - agent ?l - location)
 :precondition (and (atLocation ?a ?l)) :effect (and (checked ?l)))
(:action inventory :parameters (?a - agent) :precondition () :effect (and (checked ?a)))
(:action help :parameters (?a - agent) :precondition () :effect (and (checked ?a)))
(:action examineReceptacle :parameters (?a - agent ?r - receptacle)
 :precondition (and (exists (?l - location) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l))))
 :effect (and (checked ?r)))
; only what is in the hand can be examined
(:action examineObject :parameters (?a - agent ?o - object)
 :precondition (and (holds ?a ?o)) :effect (and (checked ?o)))
(:action GotoLocation :parameters (?a - agent ?lStart - location ?lEnd - location ?r - receptacle)
 :precondition (and (atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd))
 :effect (and (not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd) (increase (total-cost) 1)))
(:action OpenObject :parameters (?a - agent ?l - location ?r - receptacle)
 :precondition (and (openable ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (not (opened ?r)))
 :effect (and (opened ?r) (checked ?r) (increase (total-cost) 1)))
(:action CloseObject :parameters (?a - agent ?l - location ?r - receptacle)
 :precondition (and (openable ?r) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (opened ?r))
 :effect (and (not (opened ?r)) (increase (total-cost) 1)))
(:action PickupObject :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
 :precondition (and (pickupable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r)
  (not (holdsAny ?a)) (or (not (openable ?r)) (opened ?r)))
 :effect (and (holds ?a ?o) (holdsAny ?a) (not (inReceptacle ?o ?r)) (not (objectAtLocation ?o ?l)) (increase (total-cost) 1)))
(:action PutObject :parameters (?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype)
 :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (or (not (openable ?r)) (opened ?r))
  (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot))
 :effect (and (inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a)) (increase (total-cost) 1)))
(:action CleanObject :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
 :precondition (and (cleanable ?o) (or (receptacleType ?r SinkType) (receptacleType ?r SinkBasinType))
  (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
 :effect (and (isClean ?o) (increase (total-cost) 5)))
(:action HeatObject :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
 :precondition (and (heatable ?o) (receptacleType ?r MicrowaveType) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
 :effect (and (isHot ?o) (not (isCool ?o)) (increase (total-cost) 5)))
(:action CoolObject :parameters (?a - agent ?l - location ?r - receptacle ?o - object)
 :precondition (and (coolable ?o) (receptacleType ?r FridgeType) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (holds ?a ?o))
 :effect (and (isCool ?o) (not (isHot ?o)) (increase (total-cost) 5)))
(:action ToggleObject :parameters (?a - agent ?l - location ?o - object ?r - receptacle)
 :precondition (and (toggleable ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r))
 :effect (and (when (isOn ?o) (not (isOn ?o))) (when (not (isOn ?o)) (isOn ?o)) (isToggled ?o) (increase (total-cost) 5)))
(:action SliceObject :parameters (?a - agent ?l - location ?co - object ?ko - object)
 :precondition (and (sliceable ?co) (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType))
  (atLocation ?a ?l) (objectAtLocation ?co ?l) (holds ?a ?ko))
 :effect (and (isSliced ?co) (increase (total-cost) 5)))
)
`

const genGoal = "@GOAL@"

const genGrammarHead = `# household texts of generated games
grammar :: """
{
"intro": [{"rhs": "-= Welcome to TextWorld, ALFRED! =-\n\n#look.feedback#\n\n#task#"}],
"task": [{"rhs": "` + genGoal + `"}],
"look.feedback": [
 {"condition": "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)",
  "rhs": "You are facing the [{r.name | atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)}]. Next to it, you see #beside#."},
 {"rhs": "You are in the middle of a room. Looking quickly around you, you see #around#."}],
"around": [{"rhs": "[{r.indefinite + ' ' + r.name | receptacleatlocation(r:receptacle, l:location)}]"}],
"beside": [{"rhs": "[{o.indefinite + ' ' + o.name | atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)}]"}],
"GotoLocation.feedback": [{"rhs": "You arrive at {r.name}. #examineReceptacle.feedback#"}],
"OpenObject.feedback": [{"rhs": "You open the {r.name}. #examineReceptacle.feedback#"}],
"CloseObject.feedback": [{"rhs": "You close the {r.name}."}],
"PickupObject.feedback": [{"rhs": "You pick up the {o.name} from the {r.name}."}],
"PutObject.feedback": [{"rhs": "You move the {o.name} to the {r.name}."}],
"HeatObject.feedback": [{"rhs": "You heat the {o.name} using the {r.name}."}],
"CleanObject.feedback": [{"rhs": "You clean the {o.name} using the {r.name}."}],
"CoolObject.feedback": [{"rhs": "You cool the {o.name} using the {r.name}."}],
"ToggleObject.feedback": [{"rhs": "You turn on the {o.name}."}],
"SliceObject.feedback": [{"rhs": "You sliced the {co.name} with the {ko.name}."}],
"inventory.feedback": [
 {"condition": "holdsany(a:agent)", "rhs": "You are carrying: [{o.indefinite + ' ' + o.name | holds(a:agent, o:object)}]."},
 {"rhs": "You are not carrying anything."}],
"examineReceptacle.feedback": [
 {"condition": "openable(r:receptacle) & opened(r:receptacle)", "rhs": "The {r.name} is open. In it, you see #contents#."},
 {"condition": "openable(r:receptacle)", "rhs": "The {r.name} is closed."},
 {"rhs": "On the {r.name}, you see #contents#."}],
"contents": [{"rhs": "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"}],
"examineObject.feedback": [
 {"condition": "isreceptacleobject(o:object)", "rhs": "This is a normal {o.name}. In it, you see [{i.indefinite + ' ' + i.name | inreceptacleobject(i:object, o:object)}]."},
 {"condition": "isclean(o:object) & ishot(o:object) & issliced(o:object)", "rhs": "This is a hot and clean sliced {o.name}."},
 {"condition": "isclean(o:object) & iscool(o:object) & issliced(o:object)", "rhs": "This is a cool and clean sliced {o.name}."},
 {"condition": "isclean(o:object) & issliced(o:object)", "rhs": "This is a clean sliced {o.name}."},
 {"condition": "ishot(o:object) & issliced(o:object)", "rhs": "This is a hot sliced {o.name}."},
 {"condition": "iscool(o:object) & issliced(o:object)", "rhs": "This is a cool sliced {o.name}."},
 {"condition": "isclean(o:object) & ishot(o:object)", "rhs": "This is a hot and clean {o.name}."},
 {"condition": "isclean(o:object) & iscool(o:object)", "rhs": "This is a cool and clean {o.name}."},
 {"condition": "ishot(o:object)", "rhs": "This is a hot {o.name}."},
 {"condition": "isclean(o:object)", "rhs": "This is a clean {o.name}."},
 {"condition": "iscool(o:object)", "rhs": "This is a cold {o.name}."},
 {"condition": "toggleable(o:object) & istoggled(o:object)", "rhs": "This {o.name} is on."},
 {"condition": "sliceable(o:object) & issliced(o:object)", "rhs": "This is a sliced {o.name}."},
 {"rhs": "There's nothing special about {o.name}."}],
"list_empty": [{"rhs": "nothing"}],
"list_separator": [{"rhs": ", "}],
"list_last_separator": [{"rhs": ", and "}]
}
""";
`

// genGrammarText is the grammar of generated games with the mark for the goal sentence in it.
func genGrammarText() string {
	var b strings.Builder
	b.WriteString(genGrammarHead)
	for _, a := range [][2]string{
		{"look", "look"}, {"inventory", "inventory"}, {"examineReceptacle", "examine {r}"}, {"examineObject", "examine {o}"},
		{"GotoLocation", "go to {r}"}, {"OpenObject", "open {r}"}, {"CloseObject", "close {r}"},
		{"PickupObject", "take {o} from {r}"}, {"PutObject", "move {o} to {r}"}, {"CleanObject", "clean {o} with {r}"},
		{"HeatObject", "heat {o} with {r}"}, {"CoolObject", "cool {o} with {r}"}, {"ToggleObject", "use {o}"},
		{"SliceObject", "slice {co} with {ko}"},
	} {
		b.WriteString("action " + a[0] + " { template :: \"" + a[1] + "\"; feedback :: \"#" + a[0] + ".feedback#\"; }\n")
	}
	b.WriteString("action help { template :: \"help\"; feedback :: \"\n" + helpText + "\"; }\n")
	return b.String()
}
