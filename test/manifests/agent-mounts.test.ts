import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { NodeTopology } from '../../kube/node-topology.ts';
import { writeSysfs } from '../../sandbox/kubelet/sysfs.ts';
import { createFakeApi, type FakeApi } from '../node-agent/api-stand-in.ts';
import { FakeKubelet } from '../node-agent/kubelet-stand-in.ts';
import { twoCells } from '../node-agent/support.ts';
import { writeKubeconfig } from '../node-agent/wiring/agent-stage.ts';
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { root as sources } from '../support/bundles.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { needs } from '../support/parts.ts';

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

interface Pod {
  readonly containers: readonly { readonly args: readonly string[]; readonly volumeMounts: readonly Mount[] }[];
  readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
}

const NODE = 'worker-1';
const KUBELET = '/var/lib/kubelet';
/** Cgroups of emulators, the device plugin's sockets, and the state that an agent keeps for the next one. */
const WRITTEN = ['/host/cgroup', `${KUBELET}/device-plugins`, '/var/lib/plumbline'];
/** The resources that the network map below makes the agent register on every node. */
const RESOURCES = ['physnet.plumbline.dev/physnet1', 'plumbline.dev/tunnel', 'plumbline.dev/placed'] as const;
const WRITABLE: Readonly<Record<string, readonly string[]>> = {
  'plumbline-node-agent': WRITTEN,
  'plumbline-node-agent-dpu-host': WRITTEN,
};

function podOf(name: string): Pod {
  const daemonSet = objectsOf(render('base')).find(
    ({ kind, metadata }) => kind === 'DaemonSet' && metadata.name === name,
  );
  return (daemonSet as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec;
}

describe('the agent’s mounts', () => {
  needs('kubectl');

  for (const [name, writable] of Object.entries(WRITABLE)) {
    it(`${name}: only paths that the agent writes are writable on the host`, () => {
      const { containers, volumes } = podOf(name);
      const mounts = containers[0]?.volumeMounts ?? [];
      const ofHost = (mount: Mount) => volumes.find((volume) => volume.name === mount.name)?.hostPath !== undefined;
      const mount = mounts
        .filter((mount) => ofHost(mount) && mount.readOnly !== true)
        .map(({ mountPath }) => mountPath);
      assert.deepEqual(mount.sort(), [...writable].sort());
      for (const directory of ['pods', 'plugins']) {
        const hiding = mounts.find(({ mountPath }) => mountPath === `${KUBELET}/${directory}`);
        assert.ok(hiding && !ofHost(hiding), `${directory}: what pods have mounted is not seen`);
      }
    });
  }
});

describe('the agent with the mounts of its DaemonSet and a read-only root', function () {
  needs('kubectl');
  needs('linux');
  needs('root');
  this.timeout(300_000);
  const temp = tempDirectories();
  let api: FakeApi;
  let kubelet: FakeKubelet;
  let agent: ChildProcess | undefined;
  let lines: string[];
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(lines);
    agent?.kill('SIGKILL');
    await kubelet?.stop();
    await api?.close();
  });

  for (const name of Object.keys(WRITABLE)) {
    it(`${name}: reports, registers with the kubelet, and answers it`, async () => {
      const directory = temp();
      // `host` contains the node's files, and `container` those that the agent sees.
      const [host, container] = [join(directory, 'host'), join(directory, 'container')];
      api = createFakeApi(NODE);
      const server = await api.listen();
      kubelet = new FakeKubelet(join(host, KUBELET));
      kubelet.allocatable = '2-7';
      await prepare(directory, host, server);
      kubelet.writeCheckpoint('0-7');
      await kubelet.start();

      const pod = podOf(name);
      const tmp = join(directory, 'tmp');
      const script = [
        ...mountScript(pod, directory),
        ...PROBES.map((probe) => `(${probe(container)}) >>${directory}/probes 2>&1`),
      ];
      const flags = [
        ...(pod.containers[0]?.args ?? []),
        ...['--node-name', NODE, '--probe-port', '0', '--kubeconfig', join(directory, 'kubeconfig')],
        ...['--host-root', container, '--kubelet-endpoint', ''],
        ...['--kubelet-config', join(container, KUBELET, 'config.yaml')],
        ...['--network-map', join(directory, 'map.yaml')],
      ];
      const command = [process.execPath, '--import', 'tsx', join(sources, 'node-agent/main.ts'), ...flags];
      const run = `set -e; ${script.join('; ')}; exec ${command.map((word) => `'${word}'`).join(' ')}`;
      const options = { cwd: sources, env: { ...process.env, TMPDIR: tmp } };
      lines = [];
      const child = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', run], {
        ...options,
        stdio: 'pipe',
      });
      agent = child;
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on('line', (line) => lines.push(line));

      const topology = `/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`;
      const status = () => (api.objects.get(topology) as unknown as NodeTopology | undefined)?.status;
      await eventually(() => status() !== undefined, 'a report');
      // Devices near a network follow after the kubelet's configuration has been read: before or after these.
      const registered = () => kubelet.registrations.map(({ resourceName }) => resourceName);
      await eventually(() => RESOURCES.every((one) => registered().includes(one)), 'its resources are registered');
      assert.equal(status()?.reserved, '0-1', 'the configuration and the kubelet’s socket are read');
      const plugin = kubelet.plugin(kubelet.registrations[registered().indexOf(RESOURCES[0])]!.endpoint);
      await plugin
        .preStartContainer(['none'])
        .catch(({ message }: Error) => assert.doesNotMatch(message, /UNAVAILABLE|ENOENT/));
      plugin.close();
      // The kubelet renames a new file over the old one.
      kubelet.pods = { 'ns/vm': { compute: '2-3' } };
      kubelet.writeCheckpoint('0-1,4-7', { 'uid-1': { compute: '2-3' } });
      await eventually(() => status()?.assignments[0]?.cpus === '2-3', 'the checkpoint is followed');

      const probes = spawnSync('cat', [join(directory, 'probes')], { encoding: 'utf8' }).stdout;
      assert.doesNotMatch(probes, /wrote|saw/, probes);
      assert.ok((probes.match(/Read-only file system/g) ?? []).length >= 4, probes);
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      assert.deepEqual((await exited)[0], 0);
      assert.deepEqual(readdirSync(join(host, KUBELET, 'device-plugins')), ['kubelet.sock'], 'its sockets are gone');
      assert.equal(existsSync(join(host, KUBELET, 'written')), false);
    });
  }

  const PROBES: readonly ((container: string) => string)[] = [
    (of) => `touch ${of}${KUBELET}/written && echo wrote the directory || true`,
    (of) => `echo x >${of}${KUBELET}/config.yaml && echo wrote the configuration || true`,
    (of) => `rm ${of}${KUBELET}/cpu_manager_state && echo wrote the checkpoint || true`,
    (of) => `touch ${of}${KUBELET}/pod-resources/x && echo wrote next to the socket || true`,
    (of) => `ls ${of}${KUBELET}/pods | grep uid && echo saw a pod || true`,
    (of) => `ls ${of}${KUBELET}/plugins | grep csi && echo saw a plugin || true`,
    (of) => `touch ${of}/etc/openvswitch/x && echo wrote to Open vSwitch || true`,
  ];

  async function prepare(directory: string, host: string, server: string): Promise<void> {
    mkdirSync(join(directory, 'tmp'));
    writeKubeconfig(directory, server);
    writeTree(directory, {
      probes: '',
      'map.yaml': 'physnets: {physnet1: {numaNodes: [1]}}\ntunnel: {numaNodes: [0]}',
    });
    await writeSysfs(join(directory, 'container/sys'), twoCells);
    writeTree(join(host, KUBELET), {
      'config.yaml':
        'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: "true"}\n' +
        'topologyManagerPolicy: single-numa-node\nreservedSystemCPUs: "0-1"\n',
      'pods/uid-of-another/volumes/secret': 'x',
      'plugins/csi.example.org/csi.sock': '',
    });
  }

  /** As a container runtime does it: by the depth of the paths, each bound and, if requested, made read-only. */
  function mountScript({ containers, volumes }: Pod, directory: string): string[] {
    const mounts = [...(containers[0]?.volumeMounts ?? [])].sort(
      (a, b) => a.mountPath.split('/').length - b.mountPath.split('/').length,
    );
    const binds = mounts.flatMap(({ name, mountPath, readOnly }) => {
      const path = volumes.find((volume) => volume.name === name)?.hostPath?.path;
      const source = path === undefined ? join(directory, 'empty', name) : join(directory, 'host', path);
      const target = join(directory, 'container', mountPath);
      mkdirSync(source, { recursive: true });
      // A path below another mount has its mount point there.
      if (!mounts.some((mount) => mountPath.startsWith(`${mount.mountPath}/`))) mkdirSync(target, { recursive: true });
      return [`mount --rbind ${source} ${target}`, ...(readOnly ? [`mount -o remount,bind,ro ${target}`] : [])];
    });
    const tmp = join(directory, 'tmp');
    return [
      ...binds,
      `mount -t tmpfs tmpfs ${tmp}`,
      `mount --bind ${directory}/probes ${directory}/probes`,
      'mount -o remount,bind,ro /',
    ];
  }
});
