import assert from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync, utimesSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { kubeletOfReport } from '../../model/kubelet/report.ts';
import { KubeletConfigReader } from '../../node-agent/host/kubelet-config-reader.ts';
import { buildStatus } from '../../node-agent/report/status.ts';
import { parseNodeAgentConfig } from '../../node-agent/wiring/config.ts';
import { kubeletConfigSources } from '../../node-agent/wiring/duties.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { needs } from '../support/parts.ts';
import { inputs, knownView } from './report/inputs-fixture.ts';
import { recordingLogger, tempDirectories, writeTree } from './support.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const STATIC = `${HEAD}cpuManagerPolicy: static
cpuManagerPolicyOptions: { full-pcpus-only: "true" }
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
reservedSystemCPUs: "0"
`;
const DEFAULTS = `${HEAD}clusterDomain: cluster.local\n`;
const SINGLE_NUMA_POD = { policy: 'single-numa-node', scope: 'pod', options: {} };
const PLAIN_STATIC = { policy: 'static', options: {} };
const WHOLE_CORES = { policy: 'static', options: { 'full-pcpus-only': 'true' } };

interface Layout {
  /** Where the fixture is from. */
  readonly source: string;
  /** The command line of the process that listens on the PodResources socket. */
  readonly command: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  /** Links, by path. */
  readonly links?: Readonly<Record<string, string>>;
  readonly rootDir?: string;
  /** The agent's flags. */
  readonly flags?: readonly string[];
  /** What /configz answers; undefined if it is not allowed. */
  readonly configz?: object;
  /** Path of the certificate that the kubelet serves with. */
  readonly certificate?: string;
  /** The components of the manifests with the agent's mounts. Absent: other mounts are needed. */
  readonly components?: readonly ('k3s' | 'rke2' | 'k0s' | 'microk8s')[];
}

interface Expected {
  readonly cpuManager: object;
  readonly topologyManager?: object | undefined;
  readonly memoryManager?: string;
  readonly featureGates?: object;
  /** The message of KubeletConfigKnown. */
  readonly problem?: RegExp;
}

const OF_STATIC: Expected = { cpuManager: WHOLE_CORES, topologyManager: SINGLE_NUMA_POD };

const K3S_DIRECTORY = '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d';
const RKE2_DIRECTORY = '/var/lib/rancher/rke2/agent/etc/kubelet.conf.d';
const MICROK8S_ARGS = `--kubeconfig=\${SNAP_DATA}/credentials/kubelet.config
--cert-dir=\${SNAP_DATA}/certs
--root-dir=\${SNAP_COMMON}/var/lib/kubelet
# a comment
--node-labels="microk8s.io/cluster=true,node.kubernetes.io/microk8s-controlplane=microk8s-controlplane"
--cpu-manager-policy=static
--cpu-manager-policy-options="full-pcpus-only=true"
--topology-manager-policy=single-numa-node
--topology-manager-scope pod
--reserved-cpus=0
`;
const KUBELITE = words(
  '/snap/microk8s/9044/kubelite --scheduler-args-file=/var/snap/microk8s/9044/args/kube-scheduler',
  '--kubelet-args-file=/var/snap/microk8s/9044/args/kubelet --start-control-plane=true',
);

function unknown(problem: RegExp): Expected {
  return { cpuManager: { policy: 'static' }, problem };
}

/** The arguments of a command line. */
function words(...parts: string[]): string[] {
  return parts.join(' ').split(' ');
}

/** A layout without `expected` has the settings of STATIC. */
const LAYOUTS: [name: string, layout: Layout, expected?: Expected][] = [
  [
    'kubeadm: the file of the package’s unit',
    {
      source: 'github.com/kubernetes/release rpm/10-kubeadm.conf (ExecStart, KUBELET_CONFIG_ARGS)',
      components: [],
      command: words(
        '/usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf',
        '--kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml',
        '--node-ip=192.0.2.4',
      ),
      files: {
        '/var/lib/kubelet/config.yaml': STATIC,
        '/etc/kubernetes/kubelet.conf': 'apiVersion: v1\nkind: Config\n',
      },
    },
  ],
  [
    'kubeadm: flags in KUBELET_EXTRA_ARGS override the file',
    {
      source: 'github.com/kubernetes/release rpm/10-kubeadm.conf (KUBELET_EXTRA_ARGS)',
      components: [],
      command: words(
        '/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf',
        '--config=/var/lib/kubelet/config.yaml --cpu-manager-policy=static --reserved-cpus=0',
        '--topology-manager-policy=restricted --memory-manager-policy=Static',
        '--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Mi',
        '--feature-gates=PodLevelResourceManagers=true,NodeSwap=false',
      ),
      files: {
        '/var/lib/kubelet/config.yaml': `${HEAD}featureGates: { InPlacePodVerticalScalingExclusiveCPUs: false }\n`,
      },
    },
    {
      cpuManager: PLAIN_STATIC,
      topologyManager: { policy: 'restricted', scope: 'container', options: {} },
      memoryManager: 'Static',
      featureGates: { PodLevelResourceManagers: true, InPlacePodVerticalScalingExclusiveCPUs: false },
    },
  ],
  [
    'RKE2: drop-ins without a file',
    {
      source: 'docs.rke2.io/advanced (kubelet configuration); github.com/rancher/rke2 pkg/executor/staticpod (Kubelet)',
      components: ['rke2'],
      command: words(
        'kubelet --volume-plugin-dir=/var/lib/kubelet/volumeplugins --file-check-frequency=5s',
        `--config-dir=${RKE2_DIRECTORY} --kubeconfig=/var/lib/rancher/rke2/agent/kubelet.kubeconfig`,
        '--read-only-port=0',
      ),
      files: { [`${RKE2_DIRECTORY}/00-rke2-defaults.conf`]: DEFAULTS, [`${RKE2_DIRECTORY}/20-numa.conf`]: STATIC },
    },
  ],
  [
    'OpenShift: hyperkube with the file of the machine-config-operator, and its directory of drop-ins',
    {
      source: 'github.com/openshift/machine-config-operator templates/worker/01-worker-kubelet/_base/units',
      command: words(
        '/usr/bin/hyperkube kubelet --config=/etc/kubernetes/kubelet.conf',
        '--config-dir=/etc/openshift/kubelet.conf.d --kubeconfig=/var/lib/kubelet/kubeconfig',
        '--system-reserved=cpu=500m,memory=1Gi',
      ),
      files: {
        '/etc/kubernetes/kubelet.conf': STATIC,
        '/etc/openshift/kubelet.conf.d/30-scope.conf': `${HEAD}topologyManagerScope: container\n`,
      },
    },
    { cpuManager: WHOLE_CORES, topologyManager: { ...SINGLE_NUMA_POD, scope: 'container' } },
  ],
  [
    'k0s: a kubelet of its own below the data directory',
    {
      source: 'github.com/k0sproject/k0s pkg/component/worker/kubelet.go (Start)',
      components: ['k0s'],
      command: words(
        '/var/lib/k0s/bin/kubelet --root-dir=/var/lib/k0s/kubelet',
        '--config=/var/lib/k0s/kubelet-config.yaml --cert-dir=/var/lib/k0s/kubelet/pki',
        '--kubeconfig=/var/lib/k0s/kubelet.conf --v=1',
      ),
      rootDir: '/var/lib/k0s/kubelet',
      files: { '/var/lib/k0s/kubelet-config.yaml': STATIC },
      links: { '/var/lib/kubelet': '/var/lib/k0s/kubelet' },
    },
  ],
  [
    'MicroK8s: kubelite with a file of arguments',
    {
      source: 'github.com/canonical/microk8s microk8s-resources/default-args/{kubelite,kubelet}',
      components: ['microk8s'],
      command: KUBELITE,
      rootDir: '/var/snap/microk8s/common/var/lib/kubelet',
      files: { '/var/snap/microk8s/9044/args/kubelet': MICROK8S_ARGS },
      links: { '/var/lib/kubelet': '/var/snap/microk8s/common/var/lib/kubelet' },
    },
  ],
  [
    'K3s: shows no flags; /configz with the certificate and port of its drop-ins',
    {
      source: 'docs.k3s.io/advanced; github.com/k3s-io/k3s pkg/daemons/agent/agent_linux.go (kubeletArgsAndConfig)',
      components: ['k3s'],
      command: ['/usr/local/bin/k3s', 'server'],
      files: { [`${K3S_DIRECTORY}/20-numa.conf`]: STATIC },
      certificate: '/var/lib/rancher/k3s/agent/serving-kubelet.crt',
      configz: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0', topologyManagerPolicy: 'restricted' },
    },
    { cpuManager: PLAIN_STATIC, topologyManager: { policy: 'restricted', scope: 'container', options: {} } },
  ],
  [
    'K3s without permission for /configz: its flags are not known',
    {
      source: 'the same',
      command: ['/usr/local/bin/k3s', 'agent'],
      files: {
        [`${K3S_DIRECTORY}/20-numa.conf`]: STATIC,
        '/var/lib/kubelet/config.yaml': `${HEAD}topologyManagerPolicy: none\n`,
      },
    },
    unknown(/^the kubelet is part of k3s, which shows no flags of it; allow nodes/),
  ],
  [
    'K3s without permission, where the administrator states that the drop-ins are all',
    {
      source: 'the same',
      command: ['/usr/local/bin/k3s', 'agent'],
      files: { [`${K3S_DIRECTORY}/00-k3s-defaults.conf`]: DEFAULTS, [`${K3S_DIRECTORY}/20-numa.conf`]: STATIC },
      flags: ['--kubelet-config-dir', K3S_DIRECTORY],
    },
  ],
];

const STATED = { files: { '/c.yaml': STATIC }, flags: ['--kubelet-config', '/c.yaml'] };
const KUBELET = ['/usr/bin/kubelet', '--kubeconfig=/k', '--config=/c.yaml'];
const flagged = (...flags: string[]): Layout => {
  const command = ['/opt/other-name', '--kubeconfig=/k', '--cpu-manager-policy=static', '--reserved-cpus=0', ...flags];
  return { source: '', command, files: {} };
};
const file = (text: string, more: Partial<Layout> = {}): Layout => {
  return { source: '', command: KUBELET, files: { '/c.yaml': text }, ...more };
};
const ODD: typeof LAYOUTS = [
  [
    'flags alone, of a kubelet with another name',
    flagged('--topology-manager-policy', 'single-numa-node', '--topology_manager_scope=pod'),
    { cpuManager: PLAIN_STATIC, topologyManager: SINGLE_NUMA_POD },
  ],
  [
    'repeated flags: the last one, and all pairs of a map',
    flagged(
      '--topology-manager-scope=container',
      '--topology-manager-scope=pod',
      '--cpu-manager-policy-options=full-pcpus-only=true',
      '--cpu-manager-policy-options=distribute-cpus-across-numa=true',
    ),
    {
      cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-numa': 'true' } },
      topologyManager: { policy: 'none', scope: 'pod', options: {} },
    },
  ],
  ['a flag’s value that no kubelet takes', flagged('--max-pods=many'), unknown(/--max-pods: expected a whole number/)],
  [
    'a variable in a flag, next to a configuration that the administrator states',
    { ...flagged('--topology-manager-policy=$POLICY'), ...STATED },
    unknown(/--topology-manager-policy: the value/),
  ],
  [
    'all alpha gates',
    flagged('--feature-gates=AllAlpha=true,InPlacePodVerticalScalingExclusiveMemory=false'),
    {
      cpuManager: PLAIN_STATIC,
      topologyManager: { policy: 'none', scope: 'container', options: {} },
      featureGates: {
        PodLevelResourceManagers: true,
        InPlacePodVerticalScalingExclusiveCPUs: true,
        InPlacePodVerticalScalingExclusiveMemory: false,
      },
    },
  ],
  ['a file that is not there', file('', { files: {} }), unknown(/\/c.yaml: does not exist, or the agent has no mount/)],
  ['a relative path', file(STATIC, { command: ['kubelet', '--config=c.yaml'] }), unknown(/^c.yaml: relative to a dir/)],
];

interface PodWithMounts {
  readonly containers: readonly { readonly volumeMounts: readonly { name: string; mountPath: string }[] }[];
  readonly volumes: readonly { name: string; hostPath?: { path: string } }[];
}

/** Paths on the host by where the agent sees them, with the DaemonSet of the manifests. */
function mountsOf(components: readonly string[]): [mountPath: string, path: string | undefined][] {
  const paths = components.map((name) => `base/node-agent/components/${name}`);
  const objects = objectsOf(render('base', paths));
  const agent = objects.find(({ kind, metadata }) => kind === 'DaemonSet' && metadata.name === 'plumbline-node-agent');
  const { template } = (agent as unknown as { spec: { template: { spec: PodWithMounts } } }).spec;
  const { containers, volumes } = template.spec;
  const hostPathOf = (volume: string) => volumes.find(({ name }) => name === volume)?.hostPath?.path;
  return (containers[0]?.volumeMounts ?? []).map(({ name, mountPath }) => [mountPath, hostPathOf(name)]);
}

describe('the kubelet’s settings in a report', () => {
  const temp = tempDirectories();
  const authority = createCertificateAuthority('kubelet-ca');
  const servers: Server[] = [];
  afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((closed) => server.close(closed)))));

  const listen = async (server: Server, at: string | number): Promise<void> => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(at, resolve));
  };

  /** The kubelet listens on a real socket of this process, whose command line in the fixture is the layout's. */
  const place = async (root: string, { files, links, command, rootDir = '/var/lib/kubelet' }: Layout) => {
    writeTree(root, { ...files, [`proc/${process.pid}/cmdline`]: `${command.join('\0')}\0` });
    for (const [path, target] of Object.entries(links ?? {})) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      symlinkSync(join(root, target), join(root, path));
    }
    const socket = join(root, rootDir, 'pod-resources/kubelet.sock');
    mkdirSync(dirname(socket), { recursive: true });
    await listen(createServer(), socket);
  };

  const serve = async (root: string, { configz, certificate = '' }: Layout): Promise<void> => {
    const { cert, key } = authority.issue(['worker-1']);
    const body = JSON.stringify({ kubeletconfig: configz });
    const server = createHttpsServer({ cert, key }, (_request, response) => void response.end(body));
    await listen(server, 0);
    const { port } = server.address() as AddressInfo;
    const defaults = `${HEAD}port: ${port}\ntlsCertFile: ${certificate}\n`;
    writeTree(root, { [certificate]: cert, [`${K3S_DIRECTORY}/00-k3s-defaults.conf`]: defaults });
  };

  const sourcesOf = (root: string, { flags = [], configz }: Layout) => {
    const config = parseNodeAgentConfig(['--node-name', 'worker-1', ...flags]);
    return { ...kubeletConfigSources({ config, token: () => configz && 'secret' }), root, generation: () => 'run' };
  };

  const published = async (read: KubeletConfigReader['read']) => {
    const { config: kubeletConfig, problems } = await read();
    const view = { ...knownView, reserved: CpuSet.parse('0') };
    const status = buildStatus({ ...inputs, view, kubeletConfig, kubeletConfigProblems: problems }, undefined, 'now');
    assert.ok(status);
    return status;
  };

  for (const [name, layout, expected = OF_STATIC] of [...LAYOUTS, ...ODD]) {
    it(name, async () => {
      const root = temp();
      if (layout.configz !== undefined) await serve(root, layout);
      await place(root, layout);
      const status = await published(new KubeletConfigReader(sourcesOf(root, layout), recordingLogger().log).read);
      const condition = status.conditions?.find(({ type }) => type === 'KubeletConfigKnown');
      const { cpuManager, topologyManager, memoryManager, featureGates } = status;
      assert.deepEqual(cpuManager, expected.cpuManager);
      assert.deepEqual(topologyManager, expected.topologyManager);
      const isKnown = expected.topologyManager !== undefined;
      assert.equal(memoryManager?.policy, isKnown ? (expected.memoryManager ?? 'None') : undefined);
      assert.deepEqual(featureGates, isKnown ? (expected.featureGates ?? {}) : undefined);
      assert.equal(condition?.status, isKnown ? 'True' : 'False');
      assert.match(condition?.message ?? '', expected.problem ?? /^$/);
      const kubelet = kubeletOfReport(status);
      const unpredictable = 'unpredictable' in kubelet ? kubelet.unpredictable : '';
      const reason = `the kubelet's configuration is not reported: ${condition?.message.slice(0, 100)}`;
      assert.equal(unpredictable.startsWith(reason), !isKnown, unpredictable);
    });
  }

  describe('with the mounts of the manifests', () => {
    needs('kubectl');
    for (const [name, layout, expected = OF_STATIC] of LAYOUTS) {
      const { components } = layout;
      if (components === undefined) continue;
      it(name, async () => {
        const [root, container] = [temp(), temp()];
        if (layout.configz !== undefined) await serve(root, layout);
        await place(root, layout);
        // The agent shares the host's process table.
        const mounts = [['/proc', '/proc'] as const, ...mountsOf(components)];
        for (const [mountPath, path] of mounts.sort(([a], [b]) => a.length - b.length)) {
          if (path === undefined || existsSync(join(container, mountPath))) continue;
          mkdirSync(dirname(join(container, mountPath)), { recursive: true });
          if (existsSync(join(root, path))) symlinkSync(join(root, path), join(container, mountPath));
        }
        const sources = sourcesOf(container, { ...layout, flags: [] });
        const status = await published(new KubeletConfigReader(sources, recordingLogger().log).read);
        assert.deepEqual(status.cpuManager, expected.cpuManager);
        assert.deepEqual(status.topologyManager, expected.topologyManager);
      });
    }
  });

  it('stay the same until the kubelet starts again, whatever its files say', async () => {
    const root = temp();
    const layout = file(STATIC);
    await place(root, layout);
    let run = 'first';
    const sources = { ...sourcesOf(root, layout), generation: () => run };
    const { read } = new KubeletConfigReader(sources, recordingLogger().log);
    assert.deepEqual((await published(read)).topologyManager, SINGLE_NUMA_POD);
    writeTree(root, { '/c.yaml': `${STATIC}maxPods: 5\n` });
    const later = new Date(Date.now() + 60_000);
    utimesSync(join(root, 'c.yaml'), later, later);
    assert.deepEqual((await published(read)).topologyManager, SINGLE_NUMA_POD);
    run = '';
    assert.deepEqual((await published(read)).topologyManager, SINGLE_NUMA_POD, 'it does not run');
    run = 'second';
    const { topologyManager, conditions } = await published(read);
    assert.equal(topologyManager, undefined, 'written after the socket: the kubelet may have read the other file');
    assert.match(JSON.stringify(conditions), /c.yaml: it is newer than the running kubelet; restart the kubelet/);
  });

  it('are not those of a file that changes while it is read', async () => {
    const root = temp();
    const layout = file(STATIC);
    await place(root, layout);
    const sources = sourcesOf(root, layout);
    let isReading = true;
    const writing = (async () => {
      for (let i = 0; isReading; i++) {
        const past = new Date(Date.now() - 1_000_000 + i * 1000);
        utimesSync(join(root, 'c.yaml'), past, past);
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    let problems = '';
    // One read may be shorter than the time between two changes; then its reader reads no more in this run.
    for (let i = 0; i < 2000 && problems === ''; i++) {
      problems = (await new KubeletConfigReader(sources, recordingLogger().log).read()).problems.join();
    }
    isReading = false;
    await writing;
    assert.match(problems, /c.yaml: it changed while it was read/);
  });

  it('are unknown without a kubelet at the socket', async () => {
    const { read } = new KubeletConfigReader(sourcesOf(temp(), file(STATIC)), recordingLogger().log);
    assert.match((await read()).problems.join(), /^the kubelet's process: .*pod-resources\/kubelet.sock; allow nodes/);
  });
});
