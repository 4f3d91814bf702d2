package op

// Role is what a person is allowed to do; each includes those before it.
type Role string

// The roles, least first. "" is that of who owns the data file: all.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Admin    Role = "admin"
)

// Includes reports whether someone with role r may do what least may.
func (r Role) Includes(least Role) bool { return r.rank() >= least.rank() }

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 0
	case Operator:
		return 1
	case Approver:
		return 2
	case Admin, "":
		return 3
	}
	return -1
}
