// Command gpu-plugin is the one pretence of the test cluster: a real device plugin, speaking the
// kubelet's real protocol, whose GPUs exist in name only. A container that is given some finds
// their ids in NVIDIA_VISIBLE_DEVICES, as with NVIDIA's plugin.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// How often the sockets are looked at: the kubelet deletes all of them when it starts.
const pollInterval = 200 * time.Millisecond

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func newPlugin(count int) *plugin {
	p := &plugin{}
	for i := range count {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("GPU-%d", i), Health: api.Healthy})
	}
	return p
}

// GetDevicePluginOptions tells that neither optional call is wanted.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch reports the devices once and keeps the stream open: they never change.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate hands the device ids to the container in its environment.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return response, nil
}

// serve listens, registers and returns when either socket was replaced or removed.
func serve(ctx context.Context, p *plugin, directory, resource string) error {
	kubelet := filepath.Join(directory, "kubelet.sock")
	own := filepath.Join(directory, "gpu.sock")
	// Listening before the kubelet's socket exists would register a path that it then deletes.
	before, err := os.Stat(kubelet)
	if err != nil {
		return err
	}
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Printf("serve: %v", err)
		}
	}()
	defer server.Stop()
	if err := register(ctx, kubelet, filepath.Base(own), resource); err != nil {
		return err
	}
	log.Printf("registered %d %s", len(p.devices), resource)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
		now, err := os.Stat(kubelet)
		if err != nil || !os.SameFile(before, now) {
			return fmt.Errorf("the kubelet's socket changed")
		}
		if _, err := os.Stat(own); err != nil {
			return fmt.Errorf("the own socket is gone: %w", err)
		}
	}
}

func register(ctx context.Context, kubelet, endpoint, resource string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource,
	})
	return err
}

func main() {
	count := flag.Int("count", 2, "how many devices to report")
	directory := flag.String("directory", api.DevicePluginPath, "the kubelet's device plugin directory")
	resource := flag.String("resource", "nvidia.com/gpu", "extended resource name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := newPlugin(*count)
	for ctx.Err() == nil {
		if err := serve(ctx, p, *directory, *resource); err != nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}
