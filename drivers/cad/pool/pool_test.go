package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func site(workspace string) cad.Site { return cad.Site{Tenant: "t_a", Workspace: workspace} }

func take(t testing.TB, p *Pool, at cad.Site) cad.Worker {
	t.Helper()
	return expect.Of(p.Lease(t.Context(), at))(t)
}

func pid(t testing.TB, w cad.Worker) int {
	t.Helper()
	var d struct {
		PID   int    `json:"pid"`
		Space string `json:"space"`
	}
	reply, err := w.Call(t.Context(), cad.Call{Method: "test.pid"})
	if err == nil {
		err = core.DecodeStored(reply.Data, &d)
	}
	expect.No(t, err)
	return drivertest.HostPID(d.Space, d.PID)
}

func load(t testing.TB, w cad.Worker, workspace string, from, n int) {
	t.Helper()
	l := cad.Load{WorkspaceID: workspace, From: from}
	for i := range n {
		l.Entries = append(l.Entries, model.Entry{WorkspaceID: workspace, Seq: from + i, Method: "m"})
	}
	expect.No(t, w.Load(t.Context(), l))
	got := w.Seq(workspace)
	expect.Must(t, got == from+n-1, "seq %d, want %d", got, from+n-1)
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAWorkspaceGoesWhereItIsLoaded(t *testing.T) {
	p := rig(t, "fake")
	a, b := take(t, p, site("a")), take(t, p, site("b"))
	load(t, a, "a", 1, 3)
	load(t, b, "b", 1, 2)
	load(t, b, "a", 1, 1)
	first, second := pid(t, a), pid(t, b)
	expect.Must(t, first != second, "two leases have one process")
	b.Release()
	a.Release()
	a.Release() // twice is no more than once
	for range 3 {
		b := take(t, p, site("b"))
		a := take(t, p, site("a"))
		expect.Must(t, pid(t, a) == first && pid(t, b) == second && a.Seq("a") == 3 && b.Seq("b") == 2, "a workspace went elsewhere")
		a.Release()
		b.Release()
	}
	_, err := a.Call(t.Context(), cad.Call{Method: "test.pid"})
	expect.True(t, err != nil && a.Seq("a") == 0, "used after its release: %v", err)
	all, busy := p.Running()
	expect.True(t, all == 2 && busy == 0, "%d workers, %d busy", all, busy)
}

func TestAProcessServesOneTenantAndOneKernel(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Max = 3 })
	seen := map[int]cad.Site{}
	for _, at := range []cad.Site{{Tenant: "t_a"}, {Tenant: "t_b"}, {Tenant: "t_a", Kernel: "occt"}, {Tenant: "t_c"}, {Tenant: "t_a"}} {
		w := take(t, p, at)
		id := pid(t, w)
		was, ok := seen[id]
		expect.True(t, !ok || was.Tenant == at.Tenant, "%v came to the process of %v", at, was)
		seen[id] = at
		w.Release()
		all, _ := p.Running()
		expect.True(t, all <= 3, "%d workers", all)
	}
	expect.True(t, len(seen) >= 4, "%d processes", len(seen))
}

func TestNoMoreRunThanMay(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		p := rig(t, "fake", func(o *Options) { o.Max = most })
		var busy, highest atomic.Int32
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				w, err := p.Lease(t.Context(), cad.Site{Tenant: fmt.Sprintf("t_%d", i%3)})
				if err != nil {
					t.Error(err)
					return
				}
				now := busy.Add(1)
				for old := highest.Load(); now > old && !highest.CompareAndSwap(old, now); old = highest.Load() {
				}
				expect.Is(t, expect.Fault(w.Call(t.Context(), cad.Call{Method: "test.pid"})), nil)
				busy.Add(-1)
				w.Release()
			})
		}
		wg.Wait()
		all, _ := p.Running()
		expect.True(t, all <= most && int(highest.Load()) <= most, "max %d: %d ran, %d at once", most, all, highest.Load())
	}
}

func TestWhoWaitsCanGiveUp(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Max = 1 })
	w := take(t, p, site("a"))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	expect.Err(t, expect.Fault(p.Lease(ctx, site("b"))), context.DeadlineExceeded, "error")
	w.Release()
	take(t, p, site("b")).Release()
}

func TestAnIdleWorkerEnds(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Idle = 50 * time.Millisecond })
	w := take(t, p, site("a"))
	id := pid(t, w)
	w.Release()
	expect.Await(t, "it ends", func() bool { all, _ := p.Running(); return all == 0 })
	expect.True(t, !alive(id), "the process is still there")
	take(t, p, site("a")).Release()
}

func TestACallEndsWithItsContext(t *testing.T) {
	p, patient := rig(t, "fake"), rig(t, "fake", func(o *Options) { o.Grace = 2 * time.Minute })
	for _, c := range []struct {
		method string
		says   string // "" when it succeeds
		stays  bool
	}{
		{"test.wait", "test.wait: context deadline exceeded", true},
		{"test.late", "", true},
		{"test.hang", "did not stop", false},
	} {
		p := p
		if c.stays {
			p = patient
		}
		w := take(t, p, site("a"))
		id := pid(t, w)
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := w.Call(ctx, cad.Call{Method: c.method})
		stop()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("%s: %v", c.method, err)
		}
		w.Release()
		if !c.stays {
			expect.Await(t, "it ends", func() bool { return !alive(id) })
		}
		next := take(t, p, site("a"))
		if (pid(t, next) == id) != c.stays {
			t.Errorf("%s: the next lease has process %d, this one had %d", c.method, pid(t, next), id)
		}
		expect.True(t, c.stays || next.Seq("a") == 0, "a fresh process is said to hold something")
		next.Release()
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w := take(t, p, site("a"))
	defer w.Release()
	expect.Err(t, expect.Fault(w.Call(ctx, cad.Call{Method: "test.hang"})), context.Canceled, "with a context that is over")
	pid(t, w)
}

func TestAWorkerThatIsLostSaysWhyAndIsReplaced(t *testing.T) {
	p := rig(t, "fake")
	for _, c := range []struct{ method, says string }{
		{"test.die", "I am done for"},
		{"test.die", "lost during test.die: exited with status 7"},
		{"test.noise", "only chatter"},
		{"test.nonsense", "can't be read"},
		{"test.kernel", "test.kernel: the kernel was lost"},
	} {
		w := take(t, p, site("a"))
		load(t, w, "a", 1, 1)
		id := pid(t, w)
		_, err := w.Call(t.Context(), cad.Call{Method: c.method})
		fault := (*cad.Fault)(nil)
		expect.True(t, err != nil && !errors.As(err, &fault) && strings.Contains(err.Error(), c.says), "%s: %v, want %q", c.method, err, c.says)
		expect.Is(t, w.Seq("a"), 0, "it is said to hold something still")
		w.Release()
		next := take(t, p, site("a"))
		expect.True(t, pid(t, next) != id, "%s: the process goes on", c.method)
		next.Release()
		expect.Await(t, "it ends", func() bool { return !alive(id) })
	}
}

func TestAWorkerKilledWhileIdleIsReplacedUnseen(t *testing.T) {
	p := rig(t, "fake")
	for range 10 {
		w := take(t, p, site("a"))
		load(t, w, "a", 1, 1)
		id := pid(t, w)
		w.Release()
		expect.No(t, syscall.Kill(id, syscall.SIGKILL))
		expect.Await(t, "it is missed", func() bool { all, _ := p.Running(); return all == 0 })
		w = take(t, p, site("a"))
		expect.True(t, w.Seq("a") == 0 && pid(t, w) != id, "the dead process was leased")
		w.Release()
	}
}

func TestARefusalIsAFaultAndTheWorkerGoesOn(t *testing.T) {
	p := rig(t, "fake")
	w := take(t, p, site("a"))
	defer w.Release()
	id := pid(t, w)
	_, err := w.Call(t.Context(), cad.Call{Method: "test.refuse"})
	var fault *cad.Fault
	if !errors.As(err, &fault) || fault.Code != -32001 || fault.Name != "ENTITY_NOT_FOUND" || fault.Field != "entity_id" ||
		string(fault.Value) != `"x"` || fault.Suggestion != "look" || fault.Message != "no such" {
		t.Errorf("error %#v", err)
	}
	expect.Is(t, pid(t, w), id, "it was replaced")
}

func TestProgressIsTold(t *testing.T) {
	p := rig(t, "fake")
	w := take(t, p, site("a"))
	defer w.Release()
	var told []string
	_, err := w.Call(t.Context(), cad.Call{Method: "test.progress", Progress: func(percent float64, stage string) {
		told = append(told, fmt.Sprint(percent, stage))
	}})
	got := strings.Join(told, " ")
	expect.True(t, err == nil && got == "30s1 60s2 90s3", "told %q (%v)", got, err)
}

func TestAWorkerKeepsNoMoreWorkspacesThanItMay(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Held = 3 })
	w := take(t, p, site("a"))
	defer w.Release()
	for _, id := range []string{"a", "b", "c", "a", "d", "e"} {
		load(t, w, id, 1, 1)
	}
	for id, want := range map[string]int{"a": 1, "b": 0, "c": 0, "d": 1, "e": 1} {
		expect.Is(t, w.Seq(id), want, "workspace", id, "seq")
	}
}

func TestALongJournalGoesInParts(t *testing.T) {
	p := rig(t, "fake")
	w := take(t, p, site("a"))
	defer w.Release()
	l := cad.Load{WorkspaceID: "a", From: 1}
	for i := range 5 {
		blob := make([]byte, 3<<20)
		l.Entries = append(l.Entries, model.Entry{WorkspaceID: "a", Seq: 1 + i, Method: "m", Blobs: []model.Blob{model.NewBlob(blob)}})
	}
	if err := w.Load(t.Context(), l); err != nil || w.Seq("a") != 5 {
		t.Errorf("seq %d: %v", w.Seq("a"), err)
	}
	l = cad.Load{WorkspaceID: "b", From: 1, Entries: []model.Entry{{Blobs: []model.Blob{{Data: make([]byte, 30<<20)}}}}}
	expect.Is(t, core.AsError(w.Load(t.Context(), l)).Code, core.InvalidInput, "an entry that is too long")
	pid(t, w)
}

func TestAWorkerThatGrewIsReplaced(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Resident = 60 << 20 })
	w := take(t, p, site("a"))
	id := pid(t, w)
	grow := func(size int) error {
		_, err := w.Call(t.Context(), cad.Call{Method: "test.grow", Params: core.Raw(fmt.Sprintf(`{"size":%d}`, size))})
		return err
	}
	expect.No(t, grow(80<<20))
	for range leastLeases - 1 {
		w.Release()
		w = take(t, p, site("a"))
		expect.Must(t, pid(t, w) == id, "it was replaced too soon")
	}
	w.Release()
	expect.Await(t, "it ends", func() bool { return !alive(id) })
	w = take(t, p, site("a"))
	defer w.Release()
	expect.Says(t, grow(16<<30), "said: fatal error: ", "more than the limit")
}

func TestWhatCanNotBeginSaysWhy(t *testing.T) {
	for _, c := range []struct {
		role, says string
		change     func(*Options)
		at         cad.Site
		code       core.Code
	}{
		{"silent", "no answer within", func(o *Options) { o.Start = 50 * time.Millisecond }, site("a"), core.Unavailable},
		{"mistaken", "another", nil, site("a"), core.Unavailable},
		{"broken", "no kernel for you", nil, site("a"), core.Unavailable},
		{"fake", "start a CAD worker", func(o *Options) { o.Command = []string{"/nowhere/swarmdeck"} }, site("a"), core.Unavailable},
		{"fake", "embedded or occt", nil, cad.Site{Tenant: "t_a", Kernel: "parasolid"}, core.InvalidInput},
		{"fake", "FreeCAD is not there", func(o *Options) {
			o.Kernels = []Kernel{{Name: "embedded"}, {Name: "occt", Find: func(context.Context) error { return errors.New("FreeCAD is not there") }}}
		}, cad.Site{Tenant: "t_a", Kernel: "occt"}, core.Unavailable},
	} {
		p := rig(t, c.role, func(o *Options) {
			if c.change != nil {
				c.change(o)
			}
		})
		for range 2 {
			_, err := p.Lease(t.Context(), c.at)
			expect.True(t, err != nil && strings.Contains(err.Error(), c.says) && core.AsError(err).Code == c.code,
				"%s: %v, want %s %q", c.role, err, c.code, c.says)
		}
		expect.Await(t, "nothing is left", func() bool { all, _ := p.Running(); return all == 0 })
	}
}

func TestKernelsTellWhatThereIs(t *testing.T) {
	looked := 0
	there := errors.New("python can't import FreeCAD")
	p := rig(t, "fake", func(o *Options) {
		o.Kernels = []Kernel{{Name: "embedded"}, {Name: "occt", Find: func(context.Context) error { looked++; return there }}}
	})
	for range 3 {
		got := fmt.Sprint(p.Kernels())
		expect.Is(t, got, "[{embedded  } {occt  python can't import FreeCAD}]")
	}
	take(t, p, site("a")).Release()
	expect.Is(t, p.Kernels()[0].Version, "fake 1", "version")
	expect.Is(t, looked, 1, "looked")
}

func TestCloseEndsWhatWorksAndWhoWaits(t *testing.T) {
	p := rig(t, "fake", func(o *Options) { o.Max = 1 })
	w := take(t, p, site("a"))
	id := pid(t, w)
	failed := make(chan error, 2)
	go func() {
		_, err := w.Call(context.Background(), cad.Call{Method: "test.hang"})
		failed <- err
	}()
	go func() {
		_, err := p.Lease(context.Background(), site("b"))
		failed <- err
	}()
	expect.Await(t, "one waits", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return len(p.waiting) == 1 })
	expect.No(t, p.Close(t.Context()))
	for range 2 {
		expect.Fails(t, <-failed, "it went on")
	}
	expect.True(t, !alive(id), "the process is still there")
	expect.Is(t, core.AsError(expect.Fault(p.Lease(t.Context(), site("c")))).Code, core.Unavailable, "lease of a closed pool")
	w.Release()
}
