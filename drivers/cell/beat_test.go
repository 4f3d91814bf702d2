package cell

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarmdeck/expect"
)

func TestARunStandsStillFromWhenItIsNotHeld(t *testing.T) {
	each(t, func(t *testing.T, s *Supervisor) {
		s.opt.Leased = true
		dir := t.TempDir()
		start := func(run string) (*Process, error) {
			return s.Start(Spec{Run: run, Dir: dir, Wall: Wall{Profile: Open}, Argv: sh("while :; do echo x >>" + run + "; sleep 0.01; done")})
		}
		expect.True(t, expect.Fault(start("early")) != nil, "a run starts though nothing holds it")
		until := time.Now().Add(time.Second)
		s.Hold(until)
		held := expect.Of(start("held"))(t)
		t.Cleanup(func() { expect.No(t, held.Stop(Grace{})) }) // before its directory goes
		size := func() int64 {
			info, err := os.Stat(filepath.Join(dir, "held"))
			if err != nil {
				return 0
			}
			return info.Size()
		}
		expect.Await(t, "it works", func() bool { return size() > 0 })
		before := expect.Rests(t, "it stands still", size)
		expect.True(t, !time.Now().Before(until), "it stood still while it was held")
		expect.Fails(t, expect.Fault(start("late")), "a run starts after the time of all")
		s.Hold(time.Now().Add(time.Minute))
		expect.Await(t, "it goes on", func() bool { return size() > before })
	})
}
