package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func attemptsToReach() []attempt {
	tcp := func(name string, to func(w *world) string) attempt {
		return attempt{family: reachOut, name: name, do: func(w *world) string {
			c, err := net.DialTimeout("tcp", to(w), time.Second)
			if err != nil {
				return ""
			}
			c.Close()
			return "connected"
		}}
	}
	port := func(host string) func(w *world) string {
		return func(w *world) string { return net.JoinHostPort(host, strconv.Itoa(w.TCP)) }
	}
	fixed := func(addr string) func(*world) string { return func(*world) string { return addr } }
	noWay := func(name string, at int) attempt {
		a := tcp(name, fixed(net.JoinHostPort("127.0.0.1", strconv.Itoa(at))))
		do := a.do
		a.do = func(w *world) string {
			if w.Ways {
				return ""
			}
			return do(w)
		}
		return a
	}
	// proxied asks the way out for a connection, where there is one.
	proxied := func(name string, to func(w *world) string) attempt {
		return attempt{family: reachOut, name: name, do: func(w *world) string {
			c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(PortHTTP)), time.Second)
			if err != nil {
				return ""
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", to(w))
			answer := make([]byte, 64)
			n, _ := c.Read(answer)
			if bytes.Contains(answer[:n], []byte(" 200 ")) {
				return string(answer[:n])
			}
			return ""
		}}
	}
	// socket tries to make one.
	socket := func(name string, family, kind, protocol int) attempt {
		return attempt{family: reachOut, name: name, do: func(*world) string {
			fd, err := unix.Socket(family, kind, protocol)
			if err != nil {
				return ""
			}
			_ = unix.Close(fd)
			return "made one"
		}}
	}
	unixes := func(name string, paths func(w *world) []string) attempt {
		return attempt{family: reachOut, name: name, do: func(w *world) string {
			for _, path := range paths(w) {
				for _, network := range []string{"unix", "unixgram", "unixpacket"} {
					if c, err := net.DialTimeout(network, path, time.Second); err == nil {
						c.Close()
						return path
					}
				}
			}
			return ""
		}}
	}
	udp := func(name string, to func(w *world) string) attempt {
		return attempt{family: reachOut, name: name, do: func(w *world) string {
			c, err := net.Dial("udp", to(w))
			if err != nil {
				return ""
			}
			defer c.Close()
			_, _ = c.Write([]byte(name))
			_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			if n, err := c.Read(make([]byte, 512)); err == nil {
				return fmt.Sprint(n, " bytes came back")
			}
			return ""
		}}
	}
	// changes asks the kernel for something of its network.
	changes := func(name string, kind uint16, body []byte) attempt {
		return attempt{family: reachOut, name: name, do: func(*world) string {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			head := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(body)), Type: kind, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE}
			msg := append(bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&head)), unix.SizeofNlMsghdr)), body...)
			if unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
				return ""
			}
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
			buf := make([]byte, 4096)
			n, _, err := unix.Recvfrom(fd, buf, 0)
			if err != nil || n < unix.SizeofNlMsghdr+4 {
				return ""
			}
			errno := *(*int32)(unsafe.Pointer(&buf[unix.SizeofNlMsghdr]))
			if errno == 0 {
				return "done"
			}
			return ""
		}}
	}
	flags := func(name string, do func(fd int) error) attempt {
		return attempt{family: reachOut, name: name, do: func(*world) string {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			if do(fd) == nil {
				return "done"
			}
			return ""
		}}
	}
	device := func(name, path string) attempt {
		return attempt{family: reachOut, name: name, do: func(*world) string {
			fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return ""
			}
			_ = unix.Close(fd)
			return "opened"
		}}
	}
	return []attempt{
		tcp("the machine's loopback", port("127.0.0.1")),
		tcp("its loopback by another address", port("127.1.2.3")),
		tcp("its loopback in version 6", port("::1")),
		tcp("its loopback as mapped", port("::ffff:127.0.0.1")),
		tcp("no address", port("0.0.0.0")),
		tcp("the machine's address", func(w *world) string { return port(w.Host)(w) }),
		tcp("cloud metadata", fixed("169.254.169.254:80")),
		tcp("metadata of containers", fixed("169.254.170.2:80")),
		tcp("metadata in version 6", fixed("[fd00:ec2::254]:80")),
		tcp("link-local in version 6", fixed("[fe80::1%lo]:80")),
		tcp("another host", fixed("1.1.1.1:443")),
		tcp("another host in version 6", fixed("[2606:4700:4700::1111]:443")),
		tcp("a private network", fixed("10.0.0.1:22")),
		tcp("docker's bridge", fixed("172.17.0.1:2375")),
		tcp("docker by TCP", fixed("127.0.0.1:2375")),
		tcp("ssh", fixed("127.0.0.1:22")),
		tcp("X by TCP", fixed("127.0.0.1:6000")),
		noWay("a way out that it has not", PortHTTP),
		noWay("SOCKS that it has not", PortSOCKS),
		proxied("the machine by the way out", port("127.0.0.1")),
		proxied("its address by the way out", func(w *world) string { return port(w.Host)(w) }),
		proxied("cloud metadata by the way out", fixed("169.254.169.254:80")),
		proxied("a private network by the way out", fixed("10.0.0.1:22")),
		udp("UDP to the machine", func(w *world) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(w.UDP)) }),
		udp("UDP to its address", func(w *world) string { return net.JoinHostPort(w.Host, strconv.Itoa(w.UDP)) }),
		udp("UDP to its version 6", func(w *world) string { return net.JoinHostPort("::1", strconv.Itoa(w.UDP)) }),
		udp("names by UDP", fixed("8.8.8.8:53")),
		udp("names by the machine", fixed("127.0.0.53:53")),
		udp("multicast", fixed("224.0.0.251:5353")),
		{family: reachOut, name: "a name", do: func(*world) string {
			ctx, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			for _, r := range []*net.Resolver{{PreferGo: true}, {}} {
				if all, err := r.LookupHost(ctx, "example.com"); err == nil {
					return fmt.Sprint(all)
				}
			}
			return ""
		}},
		{family: reachOut, name: "broadcast", do: func(w *world) string {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
			if unix.Sendto(fd, []byte("broadcast"), 0, &unix.SockaddrInet4{Port: w.UDP, Addr: [4]byte{255, 255, 255, 255}}) == nil {
				return "sent"
			}
			return ""
		}},
		{family: reachOut, name: "fast open", do: func(w *world) string {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			if unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: w.TCP, Addr: [4]byte{127, 0, 0, 1}}) == nil {
				return "sent"
			}
			return ""
		}},
		socket("raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		socket("raw in version 6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6),
		socket("packets", unix.AF_PACKET, unix.SOCK_RAW, 0),
		socket("packets without heads", unix.AF_PACKET, unix.SOCK_DGRAM, 0),
		socket("virtual machine's host", unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		socket("the kernel's ciphers", unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		socket("bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW, 1),
		socket("field bus", unix.AF_CAN, unix.SOCK_RAW, 1),
		socket("clusters", unix.AF_TIPC, unix.SOCK_SEQPACKET, 0),
		socket("datagrams of clusters", unix.AF_RDS, unix.SOCK_SEQPACKET, 0),
		socket("keys of IPsec", unix.AF_KEY, unix.SOCK_RAW, 2),
		socket("express data path", unix.AF_XDP, unix.SOCK_RAW, 0),
		socket("near field", unix.AF_NFC, unix.SOCK_RAW, 0),
		socket("multiplexed messages", unix.AF_KCM, unix.SOCK_SEQPACKET, 0),
		socket("shared memory of networks", unix.AF_SMC, unix.SOCK_STREAM, 0),
		socket("point to point", unix.AF_PPPOX, unix.SOCK_STREAM, 0),
		socket("logical links", unix.AF_LLC, unix.SOCK_DGRAM, 0),
		socket("phones", unix.AF_PHONET, unix.SOCK_DGRAM, 0),
		socket("traffic control of IEEE", unix.AF_IEEE802154, unix.SOCK_DGRAM, 0),
		{family: reachOut, name: "listen to the audit of the machine", do: func(*world) string {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
			if err != nil {
				return ""
			}
			defer unix.Close(fd)
			if unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}) == nil {
				return "bound"
			}
			return ""
		}},
		{family: reachOut, name: "sockets that are files, from one of a pair", do: func(w *world) string {
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
				ends, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					continue
				}
				defer unix.Close(ends[0])
				defer unix.Close(ends[1])
				for _, path := range w.Sockets {
					if err := unix.Sendto(ends[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path}); errors.Is(err, unix.EPROTOTYPE) {
						return path // it was found, and takes other words
					}
				}
			}
			return ""
		}},
		unixes("sockets that are files", func(w *world) []string { return w.Sockets }),
		unixes("the engine's name", func(w *world) []string { return []string{w.Abstract} }),
		unixes("docker", func(*world) []string {
			return []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}
		}),
		unixes("D-Bus", func(*world) []string {
			return []string{"/run/dbus/system_bus_socket", "/run/user/0/bus", fmt.Sprintf("/run/user/%d/bus", os.Getuid()), "/run/systemd/private"}
		}),
		unixes("agents of keys", func(w *world) []string {
			return []string{os.Getenv("SSH_AUTH_SOCK"), w.Home + "/.gnupg/S.gpg-agent", "/run/user/0/keyring/ssh"}
		}),
		unixes("screens", func(*world) []string {
			return []string{"@/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0", "/run/user/0/wayland-0"}
		}),
		unixes("terminals of tmux", func(*world) []string {
			return []string{"/tmp/tmux-0/default", "/tmp/tmux-1000/default", "/run/screen/S-root"}
		}),
		unixes("the log", func(*world) []string {
			return []string{"/dev/log", "/run/systemd/journal/socket", "/run/systemd/journal/stdout"}
		}),
		unixes("names of the machine", func(*world) []string {
			return []string{"/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve"}
		}),
		changes("a link", unix.RTM_NEWLINK, func() []byte {
			b := make([]byte, unix.SizeofIfInfomsg)
			return append(b, append([]byte{10, 0, unix.IFLA_IFNAME, 0}, "pwned\x00\x00\x00"...)...)
		}()),
		changes("an address", unix.RTM_NEWADDR, []byte{unix.AF_INET, 8, 0, 0, 1, 0, 0, 0, 8, 0, unix.IFA_LOCAL, 0, 10, 9, 8, 7}),
		changes("a route", unix.RTM_NEWROUTE, []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0, 8, 0, unix.RTA_OIF, 0, 1, 0, 0, 0}),
		changes("a rule", unix.RTM_NEWRULE, []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, 0, 0, 1, 0, 0, 0, 0}),
		changes("a neighbour", unix.RTM_NEWNEIGH, append([]byte{unix.AF_INET, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, 8, 0, 1, 0, 10, 9, 8, 7)),
		flags("the loopback down", func(fd int) error {
			ifr, _ := unix.NewIfreq("lo")
			ifr.SetUint16(0)
			return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
		}),
		flags("bound to a device", func(fd int) error { return unix.BindToDevice(fd, "eth0") }),
		flags("marked", func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1) }),
		flags("transparent", func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1) }),
		flags("a low port", func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{Port: 22}) }),
		flags("a filter of packets", func(fd int) error {
			_, err := unix.GetsockoptString(fd, unix.SOL_IP, 64) // IPT_SO_GET_INFO
			return err
		}),
		device("a tunnel", "/dev/net/tun"),
		device("files of its own", "/dev/fuse"),
		device("virtual machines", "/dev/kvm"),
		device("the host of virtual machines", "/dev/vsock"),
		device("network block devices", "/dev/nbd0"),
		device("accelerated networks", "/dev/vhost-net"),
		{family: reachOut, name: "listen to the machine", do: func(w *world) string {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil && unix.Bind(fd, &unix.SockaddrInet4{Port: w.Listen}) == nil {
				_ = unix.Listen(fd, 1) // for as long as the attacker lives
			}
			return ""
		}},
		{family: reachOut, name: "by python", do: func(w *world) string {
			out, _ := exec.Command("/usr/bin/python3", "-c", fmt.Sprintf("import socket;socket.create_connection(('127.0.0.1',%d),1);print('connected')", w.TCP)).Output()
			return string(out)
		}},
		{family: reachOut, name: "by bash", do: func(w *world) string {
			out, _ := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo connected", w.TCP)).Output()
			return string(out)
		}},
		{family: reachOut, name: "by a name space of the engine's", alone: true, do: func(w *world) string {
			for _, pid := range targets(w) {
				fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err == nil && unix.Setns(fd, unix.CLONE_NEWNET) == nil {
					return "joined"
				}
			}
			return ""
		}},
	}
}
