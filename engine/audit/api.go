package audit

import "swarmdeck/store"

// Delta is one difference between the replayed log and the store.
type Delta struct {
	Subject string `json:"subject"`
	ID      string `json:"id"`
	Field   string `json:"field"`
	Log     string `json:"log"`   // value by the log, "" when absent
	Store   string `json:"store"` // value in the store, "" when absent
}

// Auditable is a kind of record that reconcile compares. State must encode
// to the same JSON object that the service puts in Entry.State.
type Auditable interface {
	Subject() string
	States(tx store.Tx, each func(id string, state any) error) error
}

// Report is what verify found.
type Report struct {
	TenantID string   `json:"tenant_id"`
	OK       bool     `json:"ok"`
	Events   uint64   `json:"events"`
	RootHash string   `json:"root_hash"` // base64, RFC 6962
	Problems []string `json:"problems,omitempty"`
}
