package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"swarmdeck/engine/egress"
)

// system resolves with what the machine has, never with its search list: the
// name that was allowed is the name that is looked up.
type system struct{}

func (system) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, network, host+".")
}

func ownAddrs() []netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // loopback is closed by itself
	}
	var own []netip.Addr
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own
}

// refused is an allowed host whose addresses are not to be connected to.
type refused struct{ why string }

func (r *refused) Error() string { return r.why }

// reach connects to an allowed host: to one of its addresses that may be
// connected to, which is checked and dialled as one value.
func (p *Proxy) reach(ctx context.Context, from Origin, to egress.Request, v egress.Verdict) (net.Conn, error) {
	addrs := []netip.Addr{to.Addr()}
	if !addrs[0].IsValid() {
		looking, cancel := context.WithTimeout(ctx, handshake)
		defer cancel()
		var err error
		if addrs, err = p.opt.Resolver.LookupNetIP(looking, "ip", to.Host); err != nil {
			return nil, err
		}
	}
	own := p.opt.Own()
	var errs []error
	var last *refused
	for _, addr := range addrs[:min(len(addrs), maxAddrs)] {
		addr = addr.Unmap()
		if why := p.barred(from, to, addr, own, v); why != "" {
			last = &refused{why}
			continue
		}
		conn, err := p.opt.Dial(ctx, netip.AddrPortFrom(addr, to.Port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 && last != nil {
		return nil, last
	}
	if len(errs) == 0 {
		return nil, errors.New("the name has no address")
	}
	return nil, errors.Join(errs...)
}

// barred says why an address of an allowed host is not connected to.
func (p *Proxy) barred(from Origin, to egress.Request, addr netip.Addr, own []netip.Addr, v egress.Verdict) string {
	to.Host = addr.String()
	if denied, _ := p.decider().Denied(from, to); denied {
		return fmt.Sprintf("an egress rule denies its address %s", addr)
	}
	why := egress.Closed(addr)
	if why == "" && slices.Contains(own, addr) {
		why = "this machine's own"
	}
	if why == "" || v.Private {
		return ""
	}
	return fmt.Sprintf("its address %s is %s, which a rule with --private must allow", addr, why)
}
