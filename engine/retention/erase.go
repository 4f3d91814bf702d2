package retention

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
)

// Erased is what an erasure came to.
type Erased struct {
	Subject string         `json:"subject"`
	Erased  map[string]int `json:"erased"`        // records, by kind
	Left    []string       `json:"left"`          // what is not over or can't be read; at most 100
	More    int            `json:"more,omitzero"` // that had no room in left
	Next    string         `json:"next"`          // what to do then
}

// maxSubject bounds the name of a subject, in bytes.
const maxSubject = 256

// Erase removes what a person or an agent said, and what was done for them, and
// leaves the digests of it. What is not over is left and named. An erasure that
// was ended is finished by another.
func (s *Service) Erase(ctx context.Context, by core.Caller, subject string) (Erased, error) {
	done := Erased{Subject: subject, Erased: map[string]int{}, Left: []string{}}
	if len(subject) < 1 || len(subject) > maxSubject || core.EraseText(subject) == subject {
		return done, core.Invalid("subject", subject, fmt.Sprintf("the name of an operator or agent, or a person such as uid:1000, of 1-%d bytes", maxSubject))
	}
	if by.Kind != core.Operator {
		return done, s.opt.Ledger.Refuse(ctx, by, audit.Entry{Type: record.ErasedEvent + ".refused", Subject: "erasure", ID: subject},
			core.Errorf(core.Denied, "erase %s: only an operator may; %s %q may not", subject, by.Kind, by.Name))
	}
	s.pass.Lock() // nothing leaves meanwhile
	defer s.pass.Unlock()
	of := &record.Subject{Name: subject}
	of.Task = s.opt.Whose(of)
	if err := s.opt.Said(ctx, by.Tenant, of); err != nil {
		return done, fmt.Errorf("find what %s said: %w", subject, err)
	}
	for _, e := range s.opt.Erase {
		for from := []byte(nil); ; {
			var n int
			err := health.Caught(func() (err error) {
				from, n, err = e.Erase(ctx, by, of, from)
				return err
			})
			done.Erased[e.Kind] += n
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return done, fmt.Errorf("erase the %s of %s: %w", e.Kind, subject, err)
			}
			if from == nil {
				break
			}
		}
		if done.Erased[e.Kind] == 0 {
			delete(done.Erased, e.Kind)
		}
	}
	done.Left, done.More = append(done.Left, of.Left...), of.More
	done.Next = "store compact: until then the file's free space holds what was there"
	if len(done.Left) > 0 {
		done.Next = "end what is left and erase again, then store compact"
	}
	return done, nil
}
