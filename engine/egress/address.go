package egress

import (
	"net/netip"
	"sync"

	"swarmdeck/engine/core"
)

// closedRange is one kind of address.
type closedRange struct {
	why    string
	ranges []netip.Prefix
}

// closed are the ranges that no connection goes to unless a rule names them,
// made when the first connection needs them.
var closed = sync.OnceValue(func() []closedRange {
	return []closedRange{
		{"the cloud's metadata service", prefixes("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "100.100.100.200/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128")},
		{"loopback", prefixes("127.0.0.0/8", "::1/128")},
		{"unspecified", prefixes("0.0.0.0/8", "::/128")},
		{"link-local", prefixes("169.254.0.0/16", "fe80::/10")},
		{"private", prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")},
		{"shared by a carrier (CGNAT)", prefixes("100.64.0.0/10")},
		{"multicast", prefixes("224.0.0.0/4", "ff00::/8")},
		{"reserved", prefixes(
			"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
			"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16",
		)},
	}
})

func prefixes(texts ...string) []netip.Prefix {
	return core.Map(texts, netip.MustParsePrefix)
}

// Closed says why no connection goes to an address unless a rule names it:
// "loopback", "private" and so on; "" for a public one. An address that
// carries another (IPv4-mapped, NAT64, 6to4, ISATAP) is what that one is.
func Closed(addr netip.Addr) string {
	if !addr.IsValid() {
		return "no address"
	}
	if addr.Zone() != "" {
		return "link-local"
	}
	addr = addr.Unmap()
	for _, c := range closed() {
		for _, p := range c.ranges {
			if p.Contains(addr) {
				return c.why
			}
		}
	}
	if in := carried(addr); in.IsValid() {
		return Closed(in)
	}
	return ""
}

// carried is the IPv4 address inside an IPv6 one that leads there.
func carried(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return netip.Addr{}
	}
	b := addr.As16()
	at := -1
	switch {
	case b[0] == 0x20 && b[1] == 0x02: // 6to4
		at = 2
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}: // NAT64
		at = 12
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		at = 12
	default:
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(b[at : at+4]))
}
