package egress

import (
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"swarmdeck/engine/core"
)

// Target is where a connection goes.
type Target struct {
	Host string // lower case without a last dot, or an address in its shortest form
	Port uint16 // 1-65535; in a rule 0 is every port
}

const hostWords = "a host name (letters, digits, - _ and dots), an IP address, or *.DOMAIN"

// String is HOST:PORT, or HOST where a rule is about every port.
func (t Target) String() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.Port))
}

// Addr is the address that the host is itself, the zero Addr for a name.
func (t Target) Addr() netip.Addr {
	addr, err := netip.ParseAddr(t.Host)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// NewTarget checks where a process wants to connect to: host is a name or an
// address, with or without brackets.
func NewTarget(host string, port int) (Target, error) {
	name, err := cleanHost(host)
	if err != nil {
		return Target{}, err
	}
	if port < 1 || port > 65535 {
		return Target{}, core.Invalid("port", port, "1-65535")
	}
	return Target{name, uint16(port)}, nil
}

// cleanHost is the one way to write a host. Names beyond ASCII are refused
// unless they are written as xn--…: two names that look alike are two hosts.
// So are numbers that some resolvers take for addresses (0x7f.1, 127.1).
func cleanHost(host string) (string, error) {
	bare := host
	if in, ok := strings.CutPrefix(bare, "["); ok {
		if bare, ok = strings.CutSuffix(in, "]"); !ok {
			return "", core.Invalid("host", host, hostWords)
		}
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		if addr.Zone() != "" {
			return "", core.Invalid("host", host, "an address without a zone")
		}
		return addr.Unmap().String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(bare, "."))
	if name == "" || len(name) > 253 || bare != host {
		return "", core.Invalid("host", host, hostWords)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !plainLabel(label) {
			return "", core.Invalid("host", host, hostWords)
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return "", core.Invalid("host", host, hostWords)
	}
	return name, nil
}

func plainLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isNumber reports a label that makes resolvers read the whole as an address.
func isNumber(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(s, "0123456789") == ""
}

// parsePattern reads HOST[:PORT] of a rule. host may be *.DOMAIN or the name
// of a preset.
func parsePattern(text string) (Target, error) {
	host, port, hasPort := text, "", false
	if i := strings.LastIndexByte(text, ':'); i >= 0 && (strings.Count(text, ":") == 1 || strings.HasSuffix(text[:i], "]")) {
		host, port, hasPort = text[:i], text[i+1:], true
	}
	var t Target
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return t, core.Invalid("port", port, "1-65535")
		}
		t.Port = uint16(n)
	}
	domain, wild := strings.CutPrefix(host, "*.")
	name, err := cleanHost(domain)
	if err != nil {
		return t, core.Invalid("host", host, hostWords)
	}
	if t.Host = name; !wild {
		return t, nil
	}
	if t.Addr().IsValid() || !strings.Contains(name, ".") { // *.com is half the world
		return t, core.Invalid("host", host, "*. before a domain of two labels or more")
	}
	t.Host = "*." + name
	return t, nil
}

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
