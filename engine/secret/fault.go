package secret

import (
	"context"
	"errors"

	"swarmdeck/engine/core"
)

// Fault says that secrets of a tenant can't be opened with the key that is on this
// machine, and how many: another machine has set them, whose key is not here. It is nil
// where all can.
func (s *Secrets) Fault(ctx context.Context, tenant string) error {
	all, err := s.kind.List(ctx, tenant)
	if err != nil || len(all) == 0 {
		return err
	}
	key, err := s.keys.get()
	if err != nil && !errors.Is(err, errNoKey) {
		return err
	}
	shut := 0
	for i := range all {
		if err == nil {
			if _, bad := open(key, all[i]); bad == nil {
				continue
			}
		}
		shut++
	}
	if shut == 0 {
		return nil
	}
	return core.Errorf(core.Unavailable, "%d of %d secrets can't be opened on this machine: copy the key of the one that set them to %s, or set them again", shut, len(all), s.keys.path)
}
