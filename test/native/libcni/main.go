// Calls a network list through libcni, as container runtimes do: `libcni add|check|del <file> <sandbox> <netns>`, with
// CNI_PATH in the environment and libcni's cache in CACHE. Prints the result; a plugin's error goes to standard error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

func main() {
	if err := call(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		var known *types.Error
		if errors.As(err, &known) {
			json.NewEncoder(os.Stderr).Encode(known)
		}
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func load(file string) (*libcni.NetworkConfigList, error) {
	if strings.HasSuffix(file, ".conflist") {
		return libcni.ConfListFromFile(file)
	}
	conf, err := libcni.ConfFromFile(file)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(conf)
}

func call(verb, file, sandbox, netns string) error {
	list, err := load(file)
	if err != nil {
		return err
	}
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(os.Getenv("CNI_PATH")), os.Getenv("CACHE"), nil)
	runtime := &libcni.RuntimeConf{
		ContainerID: sandbox,
		NetNS:       netns,
		IfName:      "eth0",
		Args: [][2]string{
			{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "vm"}, {"K8S_POD_UID", "uid-1"},
		},
	}
	switch verb {
	case "add":
		result, err := cni.AddNetworkList(context.Background(), list, runtime)
		if err != nil {
			return err
		}
		return result.PrintTo(os.Stdout)
	case "check":
		return cni.CheckNetworkList(context.Background(), list, runtime)
	default:
		return cni.DelNetworkList(context.Background(), list, runtime)
	}
}
