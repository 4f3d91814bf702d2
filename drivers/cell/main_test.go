package cell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell/celltest"
	masks "swarmdeck/engine/secret"
	"swarmdeck/engine/terminal"
	"swarmdeck/expect"
)

// TestMain makes the tests' process what the engine's is, and checks at the
// end that no process was left.
func TestMain(m *testing.M) {
	if code, is := Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if os.Getpid() == 1 && os.Getenv(guestWord) != "" {
		guest()
	}
	celltest.Begin()
	if len(os.Args) > 1 && os.Args[1] == "attack" {
		os.Exit(attack())
	}
	if len(os.Args) > 1 && os.Args[1] == "refused" {
		os.Exit(beRefused())
	}
	if instance := os.Getenv("CELL_TEST_CHURN"); instance != "" {
		churn(instance)
	}
	if os.Getenv("CELL_TEST_ENGINE") != "" {
		playEngine()
	}
	if os.Getenv("CELL_TEST_PARENT") != "" {
		parent()
	}
	if os.Getenv("CELL_TEST_LAYERS") != "" {
		os.Exit(tellLayers())
	}
	if err := BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if kids := childrenOf(os.Getpid()); len(kids) > 0 {
		fmt.Fprintf(os.Stderr, "processes left by the tests: %v\n", kids)
		code = 1
	}
	os.Exit(code)
}

// playEngine starts a run as an engine would and waits to be killed.
func playEngine() {
	opt := Options{Instance: os.Getenv("CELL_TEST_ENGINE"), Keep: os.Getenv("CELL_TEST_KEEP")}
	if less := os.Getenv("CELL_TEST_LESS"); less != "" {
		opt.Without = strings.Split(less, ",")
	}
	s, err := NewSupervisor(opt)
	if err != nil {
		panic(err)
	}
	if grace, err := time.ParseDuration(os.Getenv("CELL_TEST_GRACE")); err == nil {
		s.grace = grace
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	var size *terminal.Size
	if os.Getenv("CELL_TEST_TTY") != "" {
		size = &terminal.Size{Cols: 80, Rows: 24}
	}
	p, err := s.Start(Spec{
		Terminal: size,
		Run:      "r", Argv: sh(os.Getenv("CELL_TEST_SCRIPT")), Dir: dir, Wall: Wall{Profile: Profile(os.Getenv("CELL_TEST_PROFILE"))},
		Whose: Whose{Tenant: "t_x", Task: "task"}, Keep: &Keep{Stdout: true, Mask: masks.NewMask(map[string]string{"KEY": "correct horse battery"})},
	})
	if err != nil {
		panic(err)
	}
	p.Serves("one", true)
	p.Serves("two", true)
	p.Serves("one", false)
	if err := os.WriteFile("started", nil, 0o600); err != nil {
		panic(err)
	}
	select {}
}

// tellLayers prints the layers that a worker needs and does not have.
func tellLayers() int {
	s, err := NewSupervisor(Options{Instance: "ordinary" + strconv.Itoa(os.Getpid())})
	if err != nil {
		panic(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for _, l := range s.Layers(context.Background(), Worker, dir) {
		if l.Needed && !l.OK {
			fmt.Printf("%+v\n", l)
		}
	}
	if err := s.Close(); err != nil {
		panic(err)
	}
	return 0
}

func newSupervisor(t testing.TB, without ...string) *Supervisor {
	t.Helper()
	s := expect.Of(NewSupervisor(Options{Instance: "test" + strconv.Itoa(os.Getpid()), Without: without}))(t)
	t.Cleanup(func() { expect.Is(t, s.Close(), nil, "close supervisor") })
	return s
}

// lines waits until a file has so many.
func lines(t testing.TB, dir, name string, n int) []string {
	t.Helper()
	var all []string
	expect.Await(t, fmt.Sprintf("%s holds %d lines", name, n), func() bool {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		all = strings.Fields(string(data))
		return len(all) >= n
	})
	return all
}

const nobody = celltest.Nobody

// yard is a directory in which a worker may work where there are no name
// spaces: it is not root's.
func yard(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	celltest.Passable(t, dir)
	if os.Geteuid() == 0 {
		expect.No(t, os.Chown(dir, nobody, nobody))
	}
	return dir
}
