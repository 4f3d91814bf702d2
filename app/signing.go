//go:build linux

package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
)

const (
	// trustEvery is how old what is known of the keys of a tenant's log may be, and
	// trustsAtOnce for how many tenants it is read in one look at the tenants.
	trustEvery   = 5 * time.Second
	trustsAtOnce = 4
	// leftAfter is how long a tenant stands free until any engine takes it: the one whose
	// share it is can't.
	leftAfter = time.Second
)

// maySign says whether this machine's key may sign a tenant's log, before the tenant is
// taken: a takenError where another engine has it, else an audit.UntrustedError. What
// else is wrong, the taking tells.
func (d *engines) maySign(ctx context.Context, tenant string) error {
	var untrusted *audit.UntrustedError
	if !errors.As(d.base.Part("").View(ctx, tenant, d.sealer.MaySign), &untrusted) {
		return nil
	}
	if _, here, err := d.peers.owner(ctx, tenant); err == nil && !here {
		return takenError{errors.Join(store.ErrLocked, untrusted), tenant}
	}
	return untrusted
}

// signing is what is known of the keys that may sign the logs of tenants.
type signing struct {
	mu    sync.Mutex
	known map[string]signersOf // by tenant
	free  map[string]time.Time // since when a tenant was seen to be nobody's
	// endorsed are the words that were read in the logs. It is for one goroutine.
	endorsed map[audit.Endorsement]bool
}

// maxEndorsed bounds them; one that finds no room is followed at the next start.
const maxEndorsed = 1024

type signersOf struct {
	keys []string // public keys, base64; none while the log has no event
	at   time.Time
}

// may says whether a key may sign a tenant's log, as far as that is known.
func (s *signing) may(tenant, key string) (may, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, known := s.known[tenant]
	return len(of.keys) == 0 || slices.Contains(of.keys, key), known
}

// lookAtKeys reads, where engines have keys of their own, which of them may sign the log of
// each tenant, some tenants at a time, and tells of those that this one can't take over.
func (d *engines) lookAtKeys(ctx context.Context, engines []postgres.Engine, owned []postgres.Owned) {
	mine := d.sealer.Public()
	d.base.Signs(mine)
	differ := slices.ContainsFunc(engines, func(e postgres.Engine) bool { return e.Live && e.Signer != "" && e.Signer != mine })
	left := trustsAtOnce
	for _, o := range owned {
		d.signing.mu.Lock()
		fresh := time.Since(d.signing.known[o.Tenant].at) < trustEvery
		d.signing.mu.Unlock()
		if fresh || left == 0 || ctx.Err() != nil || !differ && d.signs(o.Tenant) {
			continue
		}
		left--
		of := signersOf{at: time.Now()}
		var untrusted error
		var endorsed []audit.Endorsement
		err := d.base.Part("").View(ctx, o.Tenant, func(tx store.Tx) (err error) {
			untrusted = d.sealer.MaySign(tx)
			if of.keys, err = audit.Signers(tx); err == nil {
				endorsed, err = audit.Endorsed(tx)
			}
			return err
		})
		if err != nil {
			continue
		}
		d.endorse(ctx, o.Tenant, endorsed)
		if untrusted == nil && len(of.keys) > 0 { // by a rotation perhaps, which the log is to name
			of.keys = append(of.keys, mine)
		}
		d.signing.mu.Lock()
		if d.signing.known == nil {
			d.signing.known = map[string]signersOf{}
		}
		d.signing.known[o.Tenant] = of
		d.signing.mu.Unlock()
		d.untrusted(o.Tenant, untrusted)
	}
}

// endorse notes what a tenant's log says of keys, and has that log follow what is known,
// if its engine is here.
func (d *engines) endorse(ctx context.Context, tenant string, found []audit.Endorsement) {
	s := &d.signing
	if s.endorsed == nil {
		s.endorsed = map[audit.Endorsement]bool{}
	}
	for _, e := range found {
		if len(s.endorsed) < maxEndorsed {
			s.endorsed[e] = true
		}
	}
	if eng, here := d.Here(tenant); here {
		_, _ = d.sealer.Follow(ctx, eng.Audit, tenant, slices.Collect(maps.Keys(s.endorsed))...) // it is looked at again
	}
}

// able are the engines that may sign the log of at least one tenant, as far as that is known.
func (s *signing) able(engines []postgres.Engine, owned []postgres.Owned) []postgres.Engine {
	return slices.DeleteFunc(slices.Clone(engines), func(e postgres.Engine) bool {
		return e.Signer != "" && len(owned) > 0 && !slices.ContainsFunc(owned, func(o postgres.Owned) bool {
			may, known := s.may(o.Tenant, e.Signer)
			return may || !known
		})
	})
}

// left are the tenants that have been nobody's for a while: those whose share they are
// can't take them.
func (s *signing) left(owned []postgres.Owned, now time.Time) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := map[string]time.Time{}
	for _, o := range owned {
		if !o.Free {
			continue
		}
		since, seen := s.free[o.Tenant]
		if !seen {
			since = now
		}
		if free[o.Tenant] = since; now.Sub(since) >= leftAfter {
			all = append(all, o.Tenant)
		}
	}
	s.free = free
	return all
}

// untrusted notes that a tenant's log does not take this machine's key, or takes it with
// nil, and has the engines here say so.
func (d *engines) untrusted(tenant string, err error) {
	if err != nil {
		d.signing.mu.Lock()
		if d.signing.known == nil {
			d.signing.known = map[string]signersOf{}
		}
		if _, known := d.signing.known[tenant]; !known {
			d.signing.known[tenant] = signersOf{keys: []string{""}} // none of which is known
		}
		d.signing.mu.Unlock()
	}
	d.tell(tenant, "keys", err)
}

// signs says whether this machine's key may sign a tenant's log, or that is not known.
func (d *engines) signs(tenant string) bool {
	may, known := d.signing.may(tenant, d.sealer.Public())
	return may || !known
}
