package command_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"swarmdeck/drivers/cad/embedded"
	"swarmdeck/drivers/cad/env"
	"swarmdeck/drivers/cad/pool"
	"swarmdeck/drivers/cell"
	"swarmdeck/engine/cad"
	"swarmdeck/expect"
)

// cadWorker is the environment variable that makes this program one that
// computes geometry.
const cadWorker = "COMMAND_TEST_CAD_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(cadWorker) == "" {
		os.Exit(m.Run())
	}
	kernel := embedded.New(embedded.Options{CacheDir: embedded.CodeCache()})
	e, err := env.New(context.Background(), env.Options{Open: kernel.Open, Journal: true})
	if err == nil {
		err = e.Serve(context.Background(), os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// geometry is a pool of such workers; it starts none before one is needed.
func geometry(t testing.TB, sup *cell.Supervisor) cad.Pool {
	p := pool.New(pool.Options{
		Supervisor: sup, Command: []string{os.Args[0]}, Env: map[string]string{cadWorker: "1"}, Max: 1, Start: 2 * time.Minute,
		Kernels: []pool.Kernel{{Name: env.Embedded, Extra: embedded.ShareCache}},
	})
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		expect.Is(t, p.Close(ctx), nil)
	})
	return p
}
