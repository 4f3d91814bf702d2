//go:build linux

package app

import "context"

// follow has the engines of this process, which only read, ring when another process
// commits, until the returned function ends it.
func (d *engines) follow(ctx context.Context) (end func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	base := d.base
	go func() {
		defer close(done)
		base.Follow(ctx, func(tenants []string) {
			for _, eng := range d.All() {
				for _, tenant := range tenants {
					eng.Stirred(tenant)
				}
			}
		})
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}
}
