package builtin

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"

	"swarmdeck/engine/skill"
)

// metadata are addresses outside of the link-local ranges at which a cloud
// gives its machines' credentials to whoever asks: Alibaba, Azure, Oracle, and
// Amazon's and Google's of IPv6.
func metadata() []netip.Addr {
	return []netip.Addr{
		netip.AddrFrom4([4]byte{100, 100, 100, 200}), netip.AddrFrom4([4]byte{168, 63, 129, 16}), netip.AddrFrom4([4]byte{192, 0, 0, 192}),
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	}
}

// checkAddress refuses addresses that mean this machine's place in its network
// rather than a server: link-local ones and those of a cloud's metadata.
func checkAddress(a netip.Addr) error {
	for _, a := range meanings(a.WithZone("")) {
		refused := a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast()
		for _, m := range metadata() {
			refused = refused || a == m
		}
		if refused {
			return &skill.Failure{Code: "address_refused", Message: fmt.Sprintf("%s is a link-local address or that of a cloud's metadata, which no skill may ask", a)}
		}
	}
	return nil
}

// meanings are an address and the one of IPv4 that it may carry: mapped,
// compatible, NAT64 (RFC 6052) or 6to4 (RFC 3056).
func meanings(a netip.Addr) []netip.Addr {
	a = a.Unmap()
	if a.Is4() {
		return []netip.Addr{a}
	}
	b := a.As16()
	in := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(b[at : at+4])) }
	switch {
	case [12]byte(b[:12]) == [12]byte{}, [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return []netip.Addr{a, in(12)}
	case b[0] == 0x20 && b[1] == 0x02:
		return []netip.Addr{a, in(2)}
	}
	return []netip.Addr{a}
}

// checkDial looks at the address that is dialled, after the name was resolved:
// what a name resolves to when it is asked twice may differ.
func checkDial(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	return checkAddress(a)
}

// checkHost looks at an address in a URL itself: a proxy would dial it for us.
func checkHost(u *url.URL) error {
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return checkAddress(a)
	}
	return nil
}
