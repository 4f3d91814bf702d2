package ui

import (
	"fmt"

	"swarmdeck/ui/pane/gate"
)

// Stay is how a cockpit tells others that it is here, from Enter to Leave.
type Stay interface {
	ID() uint64
	// Look says which approval's card is before the operator; "" for none.
	Look(approval string)
	Leave()
}

// attend tells others in which tenant this cockpit is and what it looks at.
func (m *Model) attend() {
	if m.opt.Enter == nil {
		return
	}
	if m.stayIn != m.tenant {
		m.depart()
		m.stay, m.stayIn = m.opt.Enter(m.tenant), m.tenant
	}
	looks := ""
	if a := m.card.Approval(); a != nil && m.place.visible(gate.CardName) {
		looks = a.ApprovalID
	}
	if m.looks != looks {
		m.looks = looks
		m.stay.Look(looks)
	}
}

// depart ends the stay.
func (m *Model) depart() {
	if m.stay != nil {
		m.stay.Leave()
	}
	m.stay, m.stayIn, m.looks = nil, "", ""
}

// visitor is this cockpit among the snapshot's visitors; 0 when it is none.
func (sh *shared) visitor() uint64 {
	if sh.stay == nil {
		return 0
	}
	return sh.stay.ID()
}

// company says how many cockpits are open, "" for this one alone.
func (sh *shared) company() string {
	if n := len(sh.snap.Visitors); n > 1 {
		return fmt.Sprintf("%d here", n)
	}
	return ""
}
