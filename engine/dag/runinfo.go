package dag

// RunInfo says whose run is recorded.
type RunInfo struct {
	AgentID   string
	TaskID    string
	SessionID string
	TraceID   string
	Reason    string // user, schedule, subagent
	AskedBy   string // who asked for it
	AskedKind string // what that is: operator, agent …
	Attempt   int    // of the task
	// ParentTask is the task that this one is part of.
	ParentTask string
	Parent     string // the event that led to it; "" has it found

	correlation string // of its first event
}

// started is how a run begins.
func (i *RunInfo) started() *RunStarted {
	return &RunStarted{Reason: i.Reason, AskedBy: fit(i.AskedBy), AskedKind: fit(i.AskedKind), Attempt: int64(i.Attempt)}
}

// head is what the events of a run have; the first one's parent led to it.
func (i *RunInfo) head(run string) Head {
	h := Head{RunID: run, AgentID: i.AgentID, TaskID: i.TaskID, SessionID: i.SessionID, TraceID: fit(i.TraceID), CorrelationID: i.correlation}
	if IsEventID(i.Parent) {
		h.Parent = &EventRef{i.Parent}
	}
	return h
}
