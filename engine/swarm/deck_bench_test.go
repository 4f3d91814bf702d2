package swarm_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/enginetest"
	"swarmdeck/store/postgres/postgrestest"
)

// tenantsEnv is how many tenants a process of BenchmarkDeck works on.
const tenantsEnv = "SWARMDECK_TEST_TENANTS"

// livesEach is how many lives each tenant has in it, and producersEach who make them.
const livesEach, producersEach = 3000, 16

// BenchmarkDeck prints the lives a second of sixteen tenants on one PostgreSQL server
// that syncs, with one engine as a process and with four, and the processor time of a
// life: of the engines together, and of the server. Where there are fewer cores than
// engines and server want, the times tell what more cores would give.
func BenchmarkDeck(b *testing.B) {
	const tenants = 16
	server := postgrestest.StartDurable(b)
	dsn := server.Database(b, "deck")
	for _, engines := range []int{1, 4} {
		b.Run(fmt.Sprint("engines=", engines), func(b *testing.B) {
			client, there, begin := processorTime(b), server.ProcessorTime(b), time.Now()
			var wg sync.WaitGroup
			for range engines {
				wg.Go(func() {
					cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkTenantsOfAnEngine$", "-test.benchtime=1x")
					cmd.Env = append(os.Environ(), enginetest.DataEnv+"="+dsn, fmt.Sprintf("%s=%d", tenantsEnv, tenants/engines))
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Errorf("%v: %s", err, out)
					}
				})
			}
			wg.Wait()
			lives := float64(tenants * livesEach)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(lives/time.Since(begin).Seconds(), "lives/s")
			b.ReportMetric((processorTime(b)-client).Seconds()*1e6/lives, "go-us/life")
			b.ReportMetric((server.ProcessorTime(b)-there).Seconds()*1e6/lives, "server-us/life")
		})
	}
}

// BenchmarkTenantsOfAnEngine is one engine of BenchmarkDeck.
func BenchmarkTenantsOfAnEngine(b *testing.B) {
	tenants, err := strconv.Atoi(os.Getenv(tenantsEnv))
	if err != nil {
		b.Skip("a part of BenchmarkDeck")
	}
	var wg sync.WaitGroup
	for range tenants {
		r := benchRig(b, false)
		wg.Go(func() { r.live(livesEach, producersEach) })
	}
	wg.Wait()
}
