package trajectory

// Status is how an episode ended, in the words of the protocol (method.md 5).
type Status string

// The statuses. Running is also what an episode carries until it ends.
const (
	Running               Status = "running"
	Completed             Status = "completed"
	TaskLimitReached      Status = "task limit reached"
	AgentContextLimit     Status = "agent context limit"
	AgentValidationFailed Status = "agent validation failed"
	AgentInvalidAction    Status = "agent invalid action"
	TurnCap               Status = "turn_cap"
	LengthCap             Status = "length_cap"
	Unknown               Status = "unknown"
	TaskError             Status = "task error"
	Cancelled             Status = "cancelled"
	WorkerLost            Status = "worker lost"
	ControllerError       Status = "controller error"
	TurnTimeout           Status = "turn timeout"
	EngineError           Status = "engine error"
)

// Class says whose doing a status is; only Policy endings are punished, Infrastructure is never trained on.
type Class string

// The classes of method.md 5.
const (
	ClassRunning        Class = "running"
	ClassNormal         Class = "normal"
	ClassPolicy         Class = "policy"
	ClassInfrastructure Class = "infrastructure"
)

// Class returns whose doing the status is. Unknown words count as infrastructure: a failure of ours is never the
// agent's fault.
func (s Status) Class() Class {
	switch s {
	case Running:
		return ClassRunning
	case Completed:
		return ClassNormal
	case TaskLimitReached, AgentContextLimit, AgentValidationFailed, AgentInvalidAction, TurnCap, LengthCap:
		return ClassPolicy
	default:
		return ClassInfrastructure
	}
}

// EndState is the category of method.md 10 that charts and tables count.
type EndState string

// The end states in display order.
const (
	EndCompleted        EndState = "Completed"
	EndTaskLimit        EndState = "Task Limit Reached"
	EndContextLimit     EndState = "Agent Context Limit"
	EndValidationFailed EndState = "Agent Validation Failed"
	EndInvalidAction    EndState = "Agent Invalid Action"
	EndInfrastructure   EndState = "Infrastructure"
)

// EndStates lists the categories in display order.
func EndStates() []EndState {
	return []EndState{EndCompleted, EndTaskLimit, EndContextLimit, EndValidationFailed, EndInvalidAction, EndInfrastructure}
}

// EndState maps a status to its category; Running maps to the empty string.
func (s Status) EndState() EndState {
	switch s {
	case Running:
		return ""
	case Completed:
		return EndCompleted
	case TaskLimitReached, TurnCap:
		return EndTaskLimit
	case AgentContextLimit, LengthCap:
		return EndContextLimit
	case AgentValidationFailed:
		return EndValidationFailed
	case AgentInvalidAction:
		return EndInvalidAction
	default:
		return EndInfrastructure
	}
}
