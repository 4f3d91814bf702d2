package pool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// roleVariable is the environment variable that makes this program a worker: real, the
// environment with its embedded kernel; fake, one that does as its methods say;
// or one that never begins.
const roleVariable = "POOL_TEST_ROLE"

func TestMain(m *testing.M) {
	if r := os.Getenv(roleVariable); r != "" {
		os.Exit(play(r))
	}
	os.Exit(expect.Run(m))
}

func play(role string) int {
	kernel := os.Args[len(os.Args)-1]
	switch role {
	case "real":
		return serve()
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "mistaken":
		fake("another")
	case "broken":
		fmt.Fprintln(os.Stderr, "no kernel for you")
		return 3
	default:
		fake(kernel)
	}
	return 0
}

func serve() int {
	e, err := env.New(context.Background(), env.Options{
		Open: embedded.New(embedded.Options{CacheDir: embedded.CodeCache()}).Open, Journal: true,
	})
	if err == nil {
		err = e.Serve(context.Background(), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fake answers hello, holds workspaces, and misbehaves when it is asked to.
func fake(kernel string) {
	seqs := map[string]int{}
	var ballast [][]byte
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r struct {
			ID     core.Raw `json:"id"`
			Method string   `json:"method"`
			Params struct {
				Workspace string     `json:"workspace_id"`
				From      int        `json:"from"`
				Entries   []core.Raw `json:"entries"`
				Size      int        `json:"size"`
				ID        core.Raw   `json:"id"`
			} `json:"params"`
		}
		if err := core.DecodeStored(line, &r); err != nil {
			panic(err)
		}
		answer := func(data any) {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"success","data":%s,"metadata":{"execution_time_ms":2}}}`+"\n", r.ID, core.MustEncode(data))
		}
		switch r.Method {
		case "system.hello":
			answer(map[string]any{"kernel": kernel, "kernel_version": "fake 1"})
		case "workspace.load":
			seqs[r.Params.Workspace] = r.Params.From + len(r.Params.Entries) - 1
			answer(map[string]int{"seq": seqs[r.Params.Workspace], "bytes": len(line)})
		case "workspace.unload":
			delete(seqs, r.Params.Workspace)
			answer(struct{}{})
		case "test.pid":
			answer(map[string]any{"pid": os.Getpid(), "space": drivertest.Space(os.Getpid()), "held": len(seqs)})
		case "test.die":
			fmt.Fprintln(os.Stderr, "I am done for")
			os.Exit(7)
		case "test.noise":
			fmt.Println("segmentation fault? no, only chatter")
		case "test.nonsense":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":[1]}`+"\n", r.ID)
		case "test.refuse":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"no such","data":{"error_type":"ENTITY_NOT_FOUND","field":"entity_id","provided_value":"x","suggestion":"look","recoverable":true}}}`+"\n", r.ID)
		case "test.kernel":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the kernel was lost","data":{"error_type":%q,"recoverable":true}}}`+"\n", r.ID, env.KernelLost)
		case "test.progress":
			for i := 1; i <= 3; i++ {
				fmt.Printf(`{"jsonrpc":"2.0","method":"$/progress","params":{"id":%s,"percent":%d,"stage":"s%d"}}`+"\n", r.ID, i*30, i)
			}
			fmt.Printf(`{"jsonrpc":"2.0","method":"$/progress","params":{"id":99,"percent":50,"stage":"another's"}}` + "\n")
			answer(struct{}{})
		case "test.wait": // until it is cancelled
			next, err := in.ReadString('\n')
			if err != nil || !strings.Contains(next, "$/cancelRequest") || !strings.Contains(next, `"id":`+string(r.ID)) {
				panic(next)
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32012,"message":"cancelled","data":{"error_type":"TIMEOUT"}}}`+"\n", r.ID)
		case "test.late": // cancelled, but done
			_, _ = in.ReadString('\n')
			answer(map[string]bool{"done": true})
		case "test.hang":
			select {}
		case "test.grow":
			b := make([]byte, r.Params.Size)
			for i := range b {
				b[i] = 1
			}
			ballast = append(ballast, b)
			answer(map[string]int{"held": len(ballast)})
		}
	}
}

// rig is a pool of workers of this program.
func rig(t testing.TB, role string, change ...func(*Options)) *Pool {
	t.Helper()
	o := Options{
		Supervisor: drivertest.Cells(t, cell.Options{}), Command: []string{os.Args[0]}, Dir: t.TempDir(), Max: 4, Grace: time.Second, Start: 2 * time.Minute,
		Env:     map[string]string{"GORACE": "atexit_sleep_ms=0", roleVariable: role},
		Kernels: []Kernel{{Name: "embedded", Extra: embedded.ShareCache}, {Name: "occt"}},
	}
	for _, c := range change {
		c(&o)
	}
	p := New(o)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		expect.Is(t, p.Close(ctx), nil)
		all, _ := p.Running()
		expect.True(t, all == 0, "%d workers are left", all)
	})
	return p
}
