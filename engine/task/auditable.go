package task

import (
	"bytes"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// audited is what reconcile compares tasks with the audit log by.
type audited struct{}

func (audited) Subject() string { return "task" }

func (audited) States(tx store.Tx, each func(id string, state any) error) error {
	return tx.Scan(bTask, nil, nil, false, func(key, value []byte) (bool, error) {
		var t Task
		if len(key) != 8 || core.DecodeStored(value, &t) != nil {
			return true, nil // the digest differs
		}
		return true, each(core.NewID(core.TaskPrefix, tx.Tenant(), record.LastSeq(key)), t.appendState(nil))
	})
}

func (audited) Derives() []string {
	names := []string{"#" + countBytes("*"), "#" + countWaiting, "#" + countStatus("*"), "#" + countOf(bOfAgent, "*"), "#" + countOf(bOfSes, "*")}
	return append(names, core.Strings(bLive, bRare, bOfAgent, bOfSes, bChild)...)
}

// Derive implements audit.Deriver: the lists that tasks are in by their headers
// alone, and what is counted of them and of the lines of logs.
func (audited) Derive(tx store.Tx, d *audit.Derivation) error {
	counts := map[string]int64{}
	err := tx.Scan(bTask, nil, nil, false, func(key, value []byte) (bool, error) {
		var t Task
		if len(key) != 8 || core.DecodeStored(value, &t) != nil || len(t.Status) < 2 {
			return true, nil // its digest differs
		}
		seq := record.LastSeq(key)
		counts[countStatus(t.Status)]++
		if t.Waiting != "" {
			counts[countWaiting]++
		}
		switch {
		case !t.Status.Terminal():
			d.Row(bLive, liveKey(tx, t.Status, seq), nil)
		case rare(t.Status):
			d.Row(bRare, rareKey(tx, t.Status, seq), nil)
		}
		for _, ix := range t.indexes() {
			d.Row(ix.bucket, ix.key, nil)
			if ix.count != "" {
				counts[ix.count]++
			}
		}
		return true, nil
	})
	if err == nil {
		err = tx.Scan(bLog, nil, nil, false, func(key, value []byte) (bool, error) {
			if stream, _, _ := bytes.Cut(key, []byte{0}); bounded(string(stream)) {
				counts[countBytes(string(stream))] += int64(len(value))
			}
			return true, nil
		})
	}
	for name, n := range counts {
		d.Count(name, n)
	}
	return err
}
