package group

import "bytes"

// Walker steps through one table's records in a range.
type Walker interface {
	// Step moves to the next record of the range, the first at first.
	Step() error
	// Key is the present record's, nil at the end.
	Key() []byte
	// Value verifies the present record.
	Value() ([]byte, error)
}

// Visit is what a scan does with a record: more asks for the next one. Its error ends
// the scan.
type Visit = func(key, value []byte) (more bool, err error)

// Scan visits the records of a table in [from, to), merged with the
// operations of an overlay. Both w and o may be nil.
func Scan[T comparable](w Walker, t T, o *Overlay[T], from, to []byte, reverse bool, visit Visit) error {
	if from != nil && to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	var at []byte // the walker's key
	step := func() error {
		err := w.Step()
		at = w.Key()
		return err
	}
	if w != nil {
		if err := step(); err != nil {
			return err
		}
	}
	var over []int32
	if o != nil {
		over = o.sorted(t, from, to)
	}
	for at != nil || len(over) > 0 {
		if len(over) > 0 {
			next := 0
			if reverse {
				next = len(over) - 1
			}
			op := &o.Ops[over[next]]
			order := -1
			if at != nil {
				order = bytes.Compare(op.Key, at)
				if reverse {
					order = -order
				}
			}
			if order <= 0 {
				if reverse {
					over = over[:next]
				} else {
					over = over[1:]
				}
				if order == 0 {
					if err := step(); err != nil {
						return err
					}
				}
				if !op.Remove {
					if more, err := visit(op.Key, op.Value); !more || err != nil {
						return err
					}
				}
				continue
			}
		}
		value, err := w.Value()
		if err != nil {
			return err
		}
		if more, err := visit(at, value); !more || err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
