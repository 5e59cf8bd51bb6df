// Command coredns is CoreDNS with the plugins that a cluster needs, and no others.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func init() {
	// CoreDNS' own list names all its plugins; what is not in the list is not in a Corefile.
	dnsserver.Directives = []string{"errors", "ready", "cache", "kubernetes"}
}

func main() {
	coremain.Run()
}
