package command_test

import (
	"context"
	"path/filepath"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/command"
)

func TestALineEndsWhenItsEngineIsRetired(t *testing.T) {
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "data.db"), store.Options{}))(t)
	defer db.Close()
	eng := expect.Of(engine.Open(t.Context(), engine.Options{Store: db}))(t)
	defer eng.Close()
	env := &command.Env{Open: func(context.Context, command.Need) (*engine.Engine, error) { return eng, nil }}
	quiet, never, stop := env.Following(t.Context(), true)
	stop()
	<-quiet.Done()
	expect.True(t, !never(), "a line that ended by itself is told that its engine did")
	running, over, stop := env.Following(t.Context(), true)
	defer stop()
	_, err := env.Open(running, command.Need{})
	expect.Must(t, err == nil && !over() && running.Err() == nil, "%v, %v", err, running.Err())
	eng.Retire()
	if <-running.Done(); !over() {
		t.Error(context.Cause(running))
	}
}
