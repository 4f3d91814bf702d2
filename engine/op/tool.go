package op

// Tool is how an operation is offered to clients of the Model Context Protocol,
// agents among them, each of whose calls is judged. What it does not say follows
// from the operation: its description, arguments, bounds, hints and result.
type Tool struct {
	Name  string            // "cancel_task"; "" offers it to no client
	About string            // what a model reads; "" is the operation's Short
	Names map[string]string // parameters that have another name there: "text": "task"; "-" leaves one out
	Need  []string          // parameters that can't be left out there
	Free  []string          // parameters that can be left out there alone: the check fills them in
	By    []string          // by what its list can be narrowed; nil is by all that lists can
	Size  int               // records on a page unless more are asked for; 0 is core.DefaultPageSize
}
