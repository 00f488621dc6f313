package experiment

// Ended says whether nothing more happens to a run by itself.
func (s State) Ended() bool {
	return s == Stopped || s == Finished || s == Failed || s == Cancelled
}

// Active says whether a worker executes the run.
func (s State) Active() bool { return s == Running || s == Stopping }

// Resumable says whether the run can be queued again.
func (s State) Resumable() bool { return s == Stopped || s == Failed || s == Cancelled }

// Stoppable says whether a stop or cancel can be asked for.
func (s State) Stoppable() bool { return s == Queued || s == Running || s == Stopping }

// States lists the states in the order of a run's life.
func States() []State {
	return []State{Queued, Running, Stopping, Stopped, Finished, Failed, Cancelled}
}

// CanBecome says whether a run may go from s to next. A running or stopping run may become queued again when its
// worker is lost or drains.
func (s State) CanBecome(next State) bool {
	switch s {
	case Queued:
		return next == Running || next == Stopped || next == Cancelled || next == Failed
	case Running:
		return next == Stopping || next == Stopped || next == Finished || next == Failed || next == Cancelled || next == Queued
	case Stopping:
		return next == Stopped || next == Finished || next == Failed || next == Cancelled || next == Queued
	case Stopped, Failed, Cancelled:
		return next == Queued
	default:
		return false
	}
}
