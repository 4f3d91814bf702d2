package witness

import (
	"context"
	"errors"
)

// Run publishes what there is to publish until ctx ends.
func (s *Witnesses) Run(ctx context.Context) error {
	if s.opt.Driver == nil {
		<-ctx.Done()
		return nil
	}
	return s.crew.Run(ctx)
}

// tell runs one witness's publisher, which begins with what is on disk.
func (s *Witnesses) tell(ctx context.Context, w *Witness) error {
	if err := (&publisher{s: s, w: *w}).run(ctx); !errors.Is(err, errOther) {
		return err
	}
	return nil
}
