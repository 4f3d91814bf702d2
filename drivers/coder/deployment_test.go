package coder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// binaryEnv names the test binary of realtest, which make test-coder builds.
const binaryEnv = "SWARMDECK_CODER"

// theDeployment is the real Coder that the tests of a run share.
var theDeployment deployment

// deployment is a PostgreSQL and a coderd of our own.
type deployment struct {
	once sync.Once
	err  error

	dir      string
	postgres *exec.Cmd
	over     <-chan struct{} // closed at its end
	dsn      string
	front    *front

	mu    sync.Mutex
	serve *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	token string
}

// realCoder starts the deployment, or skips the test with the reason. The test
// runs beside others.
func realCoder(t *testing.T) *deployment {
	t.Helper()
	t.Parallel() // most of them wait most of the time
	return ownCoder(t)
}

// ownCoder is realCoder for a test that runs alone.
func ownCoder(t *testing.T) *deployment {
	t.Helper()
	binary := os.Getenv(binaryEnv)
	if binary == "" {
		t.Skip(binaryEnv + " names no server to test with: make test-coder builds one")
	}
	d := &theDeployment
	d.once.Do(func() { d.err = d.start(binary) })
	expect.No(t, d.err)
	return d
}

func (d *deployment) start(binary string) (err error) {
	if d.dir, err = os.MkdirTemp("", "coder"); err != nil {
		return err
	}
	if err := d.startPostgres(); err != nil {
		return err
	}
	if d.front, err = newFront(); err != nil {
		return err
	}
	return d.startServer(binary)
}

// startPostgres makes a throw-away cluster. postgres refuses to run as root.
func (d *deployment) startPostgres() error {
	bin, err := postgresBin()
	if err != nil {
		return err
	}
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(d.dir, uid, gid); err != nil {
			return err
		}
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(d.dir, "pg")
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	init.Dir, init.SysProcAttr = d.dir, &syscall.SysProcAttr{Credential: as.Credential}
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", d.dir,
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200", "-c", "shared_buffers=32MB")
	cmd.Dir, cmd.SysProcAttr = d.dir, as
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if d.over, err = start(cmd); err != nil {
		return err
	}
	d.postgres = cmd
	d.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); said.WriteString(lines.Text() + "\n") {
		if strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return nil
		}
	}
	return errors.New("postgres does not come up: " + said.String())
}

func postgresBin() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL is installed: apt-get install postgresql")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// start starts a process from a thread that lives on: the signal at the
// parent's death is that of its thread's. ended is closed once it is over.
func start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	started, over := make(chan error), make(chan struct{})
	go func() {
		defer close(over)
		// The goroutine keeps its thread until the process ends.
		lockThread()
		started <- cmd.Start()
		_ = cmd.Wait()
	}()
	return over, <-started
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startServer starts coderd on the database and has the front lead to it.
func (d *deployment) startServer(binary string) error {
	cmd := exec.Command(binary, "-test.run", "^TestServe$", "-test.timeout", "0")
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "REAL_CODER_DSN="+d.dsn, "REAL_CODER_TOKEN="+d.token)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, "coderd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	if _, err := start(cmd); err != nil {
		return err
	}
	d.serve, d.in, d.out = cmd, in, bufio.NewReader(out)
	line, err := d.read("READY ")
	if err != nil {
		return err
	}
	at, token, _ := strings.Cut(line, " ")
	d.token = token
	d.front.lead(strings.TrimPrefix(at, "http://"))
	return nil
}

// read returns what follows the next line of this kind.
func (d *deployment) read(kind string) (string, error) {
	for {
		line, err := d.out.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("the server ended: %w", err)
		}
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), kind); ok {
			return rest, nil
		}
		if strings.HasPrefix(strings.TrimSpace(line), "--- FAIL") {
			return "", errors.New("the server failed: " + line)
		}
	}
}

// order has the server do something, see realtest.
func (d *deployment) order(t *testing.T, o map[string]any) (token, id string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	line := expect.Of(json.Marshal(o))(t)
	expect.Of(d.in.Write(append(line, '\n')))(t)
	text := expect.Of(d.read("ANSWER "))(t)
	var a struct{ Token, ID, Error string }
	err := json.Unmarshal([]byte(text), &a)
	expect.Must(t, err == nil && a.Error == "", "%v: %s %v", o["do"], a.Error, err)
	return a.Token, a.ID
}

// kill ends coderd at once; again brings it back on the same address.
func (d *deployment) kill() {
	d.front.lead("")
	_ = d.serve.Process.Kill()
}

func (d *deployment) again(t *testing.T) {
	t.Helper()
	expect.No(t, d.startServer(os.Getenv(binaryEnv)))
}

func (d *deployment) url() string { return "http://" + d.front.addr }

func (d *deployment) shut() {
	if d.serve != nil {
		_ = d.serve.Process.Kill()
	}
	if d.postgres != nil {
		_ = d.postgres.Process.Signal(os.Interrupt)
		select {
		case <-d.over:
		case <-time.After(5 * time.Second):
		}
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}

// front is an address that stays while the server behind it comes and goes.
type front struct {
	addr string

	mu    sync.Mutex
	to    string
	conns map[net.Conn]bool
}

func newFront() (*front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.carry(c)
		}
	}()
	return f, nil
}

// lead sends new connections to another server and drops the old ones.
func (f *front) lead(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	for c := range f.conns {
		c.Close()
	}
	clear(f.conns)
}

func (f *front) carry(c net.Conn) {
	defer c.Close()
	f.mu.Lock()
	to := f.to
	f.mu.Unlock()
	if to == "" {
		return
	}
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	f.mu.Lock()
	f.conns[c], f.conns[s] = true, true
	f.mu.Unlock()
	go func() {
		_, _ = io.Copy(s, c)
		s.Close()
	}()
	_, _ = io.Copy(c, s)
	f.mu.Lock()
	delete(f.conns, c)
	delete(f.conns, s)
	f.mu.Unlock()
}
