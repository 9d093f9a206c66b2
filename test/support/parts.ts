import { existsSync, realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * Real programs that some tests need. If one is missing, its tests are skipped, and the runner reports it once at the
 * end with the way to install it.
 */
interface Part {
  readonly name: string;
  /** The path that proves its presence, or undefined. */
  readonly found: () => string | undefined;
  readonly install: string;
  /**
   * Debian or npm has it, or the machine is configured so: `--require packaged` requires it. Otherwise no registry has
   * it.
   */
  readonly packaged: boolean;
}

/** KubeVirt's own programs: two run, the others print the required objects. */
export const KUBEVIRT_PROGRAMS = ['virt-api', 'virt-controller', 'virt-operator', 'resource-generator'] as const;

/** The programs of a control plane: with some of them missing, none of its tests can run. */
const CONTROL_PLANE_PROGRAMS = ['kube-apiserver', 'etcd', 'kube-scheduler', 'kube-controller-manager'] as const;

const setup = 'npm run test:setup (Debian, as root)';

const PARTS = {
  kubectl: {
    name: 'kubectl',
    found: () => kubectls()[0],
    install: 'put kubectl on the PATH, or name several in KUBECTLS (docs/maintainers/testing.md)',
    packaged: false,
  },
  openVswitch: { name: 'Open vSwitch', found: () => which('ovs-vswitchd'), install: setup, packaged: true },
  qemu: { name: 'QEMU', found: () => which('qemu-system-x86_64'), install: setup, packaged: true },
  gcc: { name: 'a C compiler', found: () => which('gcc'), install: setup, packaged: true },
  musl: { name: 'musl-gcc', found: () => which('musl-gcc'), install: setup, packaged: true },
  make: { name: 'make', found: () => which('make'), install: setup, packaged: true },
  openssl: { name: 'OpenSSL', found: () => which('openssl'), install: setup, packaged: true },
  cniPlugins: {
    name: 'the CNI reference plugins',
    found: () => which('host-local', ['/usr/lib/cni', '/opt/cni/bin']),
    install: setup,
    packaged: true,
  },
  libcni: {
    name: 'Go with the sources of libcni',
    found: () =>
      which('go') && which('libcni', ['/usr/share/gocode/src/github.com/containernetworking/cni']) && which('go'),
    install: setup,
    packaged: true,
  },
  chromium: {
    name: 'Chromium',
    found: () => which('chromium') ?? which('google-chrome'),
    install: setup,
    packaged: true,
  },
  netns: {
    name: 'network namespaces (root, and ip of iproute2)',
    found: () => (process.getuid?.() === 0 ? which('ip') : undefined),
    install: `run as root; ${setup}`,
    packaged: true,
  },
  root: {
    name: 'root',
    found: () => (process.getuid?.() === 0 ? '/' : undefined),
    install: 'run as root',
    packaged: true,
  },
  containerd: { name: 'containerd', found: () => which('containerd'), install: setup, packaged: true },
  promtool: {
    name: 'promtool',
    found: () => which('promtool'),
    install: `${setup}, or put promtool on the PATH`,
    packaged: true,
  },
  helm: {
    name: 'Helm',
    found: () => process.env['HELM'] ?? which('helm'),
    install: 'put helm on the PATH, or name it in HELM',
    packaged: false,
  },
  ethtool: { name: 'ethtool', found: () => which('ethtool', ['/usr/sbin']), install: setup, packaged: true },
  irqbalance: { name: 'irqbalance', found: () => which('irqbalance', ['/usr/sbin']), install: setup, packaged: true },
  strace: { name: 'strace', found: () => which('strace'), install: setup, packaged: true },
  qemuUser: {
    name: 'the user-mode emulator of the other architecture',
    found: () => which(process.arch === 'x64' ? 'qemu-aarch64-static' : 'qemu-x86_64-static'),
    install: 'apt-get install qemu-user-static',
    packaged: false,
  },
  buildah: {
    name: 'buildah and mmdebstrap',
    found: () => which('mmdebstrap') && which('buildah'),
    install: 'apt-get install buildah mmdebstrap',
    packaged: false,
  },
  twoCpus: {
    name: 'two CPUs',
    found: () => (availableParallelism() < 2 ? undefined : '/sys/devices/system/cpu'),
    install: 'run them where this process may use two CPUs or more',
    packaged: true,
  },
  linux: {
    name: 'Linux',
    found: () => (process.platform === 'linux' ? '/proc/self' : undefined),
    install: 'run on Linux',
    packaged: true,
  },
  controlPlane: {
    name: 'a Kubernetes control plane',
    found: () => {
      const paths = CONTROL_PLANE_PROGRAMS.map((program) => which(program, assetDirectories()));
      return paths.every((path) => path !== undefined) ? paths[0] : undefined;
    },
    install: `put ${CONTROL_PLANE_PROGRAMS.join(', ')} into KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin`,
    packaged: false,
  },
  ovnKubernetes: {
    name: 'OVN-Kubernetes’ DPU lease code',
    found: () => which('ovn-kubernetes-dpu-lease', [process.env['OVN_KUBERNETES_ASSETS'] ?? '']),
    install:
      'put a program around its package dpulease, ovn-kubernetes-dpu-lease, into a folder and name it in OVN_KUBERNETES_ASSETS (docs/reference/compatibility.md)',
    packaged: false,
  },
  kubevirt: {
    name: 'the real KubeVirt',
    found: () => (KUBEVIRT_PROGRAMS.every((name) => which(name, kubevirtAssets())) ? kubevirtAssets()[0] : undefined),
    install: `put ${KUBEVIRT_PROGRAMS.join(', ')} into a folder and name it in KUBEVIRT_ASSETS (docs/maintainers/testing.md)`,
    packaged: false,
  },
} as const satisfies Record<string, Part>;

export type PartName = keyof typeof PARTS;

/**
 * Skipped tests by reason. On the global object, because the test files and the runner may each get their own instance
 * of this module (as a CommonJS and as an ES module).
 */
const registry = globalThis as typeof globalThis & { plumblineMissingParts?: Map<string, number> };
registry.plumblineMissingParts ??= new Map();
const missing = registry.plumblineMissingParts;

/** Called in a `describe`: skips its tests if the part is missing. */
export function needs(part: PartName): void {
  before(function () {
    if (PARTS[part].found() !== undefined) return;
    count(PARTS[part], countTests(this.test?.parent));
    this.skip();
  });
}

/** The same for one test, called in it. */
export function skipWithout(part: PartName, context: { skip(): unknown }): void {
  if (PARTS[part].found() === undefined) skipFor(PARTS[part], context);
}

/** Skips one test without a requirement that only the test itself can detect. */
export function skipFor(missed: Pick<Part, 'name' | 'install'>, context: { skip(): unknown }): void {
  count(missed, 1);
  context.skip();
}

function count({ name, install }: Pick<Part, 'name' | 'install'>, tests: number): void {
  const text = `${name}: ${install}`;
  missing.set(text, (missing.get(text) ?? 0) + tests);
}

/** Whether a part is installed, for tests that use another one instead. */
export function isInstalled(part: PartName): boolean {
  return PARTS[part].found() !== undefined;
}

/** The path of a part's program; only for tests that called `needs`. */
export function pathOf(part: PartName): string {
  const path = PARTS[part].found();
  if (path === undefined) throw new Error(`${PARTS[part].name} is missing: ${PARTS[part].install}`);
  return path;
}

/** The values of `--require`. */
export const REQUIREMENTS = ['packaged', 'all'] as const;

/** A line for each required part that is missing. */
export function absentParts(required: (typeof REQUIREMENTS)[number]): string[] {
  return Object.values<Part>(PARTS)
    .filter((part) => (required === 'all' || part.packaged) && part.found() === undefined)
    .map(({ name, install }) => `${name} is required and missing: ${install}`);
}

/** Number of skipped tests by missing part, with the way to install it. */
export const missingParts = (): readonly (readonly [part: string, tests: number])[] => [...missing];

/** The directories of the control plane's binaries from envtest. */
export function assetDirectories(): string[] {
  return [process.env.KUBEBUILDER_ASSETS, '/usr/local/kubebuilder/bin'].filter((path) => path !== undefined);
}

/** Those named in KUBECTLS, or the one of the PATH and the one next to the control plane. */
export function kubectls(): string[] {
  const named = process.env['KUBECTLS']?.split(delimiter).filter((path) => existsSync(path)) ?? [];
  if (named.length > 0) return named;
  const others = [which('kubectl'), which('kubectl', assetDirectories())].filter((path) => path !== undefined);
  return [...new Set(others.map((path) => realpathSync(path)))];
}

/** The directory of KubeVirt's programs. */
export function kubevirtAssets(): string[] {
  const folder = process.env['KUBEVIRT_ASSETS'];
  return folder === undefined || folder === '' ? [] : [folder];
}

function which(program: string, directories = (process.env.PATH ?? '').split(delimiter)): string | undefined {
  return [...directories, '/usr/sbin', '/sbin'].map((path) => join(path, program)).find((path) => existsSync(path));
}

function countTests(suite: Mocha.Suite | undefined): number {
  return suite === undefined ? 0 : suite.tests.length + suite.suites.reduce((sum, one) => sum + countTests(one), 0);
}
