package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/expect"
)

// held keeps files as another driver does, but no state before it is let go.
type held struct {
	resource.Driver
	once  sync.Once
	began chan time.Time // one: when the first state was asked for
	free  chan struct{}
}

var _ resource.Copying = (*held)(nil)

func (h *held) Snapshot(ctx context.Context, tenant, id string, r dag.Resource, last *dag.ExtRef) (resource.Taken, error) {
	h.once.Do(func() { h.began <- time.Now() })
	select {
	case <-h.free:
	case <-ctx.Done():
		return resource.Taken{}, ctx.Err()
	}
	return h.Driver.Snapshot(ctx, tenant, id, r, last)
}

func (h *held) Copying(dag.Resource) (done, all int) {
	select {
	case <-h.free:
		return 0, 0
	default:
		return 3, 7
	}
}

// While the state before a call is copied, its approval is open already, and the
// troubles say how far the copy is.
func TestACardIsOpenWhileTheStateBeforeItsCallIsCopied(t *testing.T) {
	h := &held{began: make(chan time.Time, 1), free: make(chan struct{})}
	d := newDeck(t, func(_ *cell.Supervisor, opt *engine.Options) {
		h.Driver = opt.Resources["files"]
		opt.Resources = map[string]resource.Driver{"files": h}
	})
	d.line("tenant create t_test")
	work := filepath.Join(d.dir, "work")
	d.no(os.Mkdir(work, 0o755))
	d.no(os.WriteFile(filepath.Join(work, "asking.sh"), []byte(asking), 0o700))
	d.line("agent create asker --project tools --dir " + work + " -- sh asking.sh")
	d.until("agent show asker", "status", "idle")
	task := str(d.object("agent assign asker 'write x'")["task_id"])

	began := <-h.began
	asked := d.untilIt("approval list --open", "one is open", func(a map[string]any) bool { return a["approval_id"] != nil })
	created := expect.Of(time.Parse(time.RFC3339Nano, str(asked["created_at"])))(d.t)
	if late := created.Sub(began); late >= resource.Patience { // then the engine waits no longer for the state
		t.Errorf("the approval is %v younger than the copy: it waited for that", late)
	}
	copying := func(want string) {
		t.Helper()
		expect.Await(t, "troubles say of the copy: "+want, func() bool {
			got := ""
			for _, trouble := range d.objects("tenant troubles") {
				if _, how, ok := strings.Cut(str(trouble["reason"]), "are being kept before its call, since "); ok {
					_, got, _ = strings.Cut(how, ", ")
				}
			}
			return got == want
		})
	}
	copying("3 of 7 files are copied")
	out := d.line("tenant troubles")
	expect.True(t, strings.Contains(out, "3 of 7 files are copied") && strings.Contains(out, "asker"), "troubles: %s", out)
	d.line("approval approve " + str(asked["approval_id"]) + " --reason fine")
	close(h.free)
	expect.Row(t, d.object("task wait "+task+" --timeout 60s"), "status", "succeeded")
	copying("")
}
