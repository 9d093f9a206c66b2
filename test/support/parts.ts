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
  /** Debian or npm has it, or the machine is configured so (`--require packaged`); otherwise no registry has it. */
  readonly packaged: boolean;
}

/** KubeVirt's own programs: two run, the others print the required objects. */
export const KUBEVIRT_PROGRAMS = ['virt-api', 'virt-controller', 'virt-operator', 'resource-generator'] as const;

/** The programs of a control plane: with some of them missing, none of its tests can run. */
const CONTROL_PLANE_PROGRAMS = ['kube-apiserver', 'etcd', 'kube-scheduler', 'kube-controller-manager'] as const;

const setup = 'npm run test:setup (Debian, as root)';

const packaged = (name: string, found: Part['found'], install = setup): Part => ({
  name,
  found,
  install,
  packaged: true,
});
const brought = (name: string, found: Part['found'], install: string): Part => ({
  name,
  found,
  install,
  packaged: false,
});
const asRoot = (path: string | undefined) => (process.getuid?.() === 0 ? path : undefined);
const hasEach = (programs: readonly string[], directories: string[]) =>
  programs.every((program) => which(program, directories) !== undefined);
const GO_LIBRARIES = ['/usr/share/gocode/src/github.com/containernetworking/cni'];

const PARTS = {
  kubectl: brought(
    'kubectl',
    () => kubectls()[0],
    'put kubectl on the PATH, or name several in KUBECTLS (docs/maintainers/testing.md)',
  ),
  openVswitch: packaged('Open vSwitch', () => which('ovs-vswitchd')),
  qemu: packaged('QEMU', () => which('qemu-system-x86_64')),
  gcc: packaged('a C compiler', () => which('gcc')),
  musl: packaged('musl-gcc', () => which('musl-gcc')),
  make: packaged('make', () => which('make')),
  openssl: packaged('OpenSSL', () => which('openssl')),
  cniPlugins: packaged('the CNI reference plugins', () => which('host-local', ['/usr/lib/cni', '/opt/cni/bin'])),
  libcni: packaged('Go with the sources of libcni', () => which('libcni', GO_LIBRARIES) && which('go')),
  chromium: packaged('Chromium', () => which('chromium') ?? which('google-chrome')),
  netns: packaged('network namespaces (root, and ip of iproute2)', () => asRoot(which('ip')), `run as root; ${setup}`),
  root: packaged('root', () => asRoot('/'), 'run as root'),
  containerd: packaged('containerd', () => which('containerd')),
  promtool: packaged('promtool', () => which('promtool'), `${setup}, or put promtool on the PATH`),
  helm: brought('Helm', () => process.env['HELM'] ?? which('helm'), 'put helm on the PATH, or name it in HELM'),
  ethtool: packaged('ethtool', () => which('ethtool', ['/usr/sbin'])),
  irqbalance: packaged('irqbalance', () => which('irqbalance', ['/usr/sbin'])),
  strace: packaged('strace', () => which('strace')),
  qemuUser: brought(
    'the user-mode emulator of the other architecture',
    () => which(process.arch === 'x64' ? 'qemu-aarch64-static' : 'qemu-x86_64-static'),
    'apt-get install qemu-user-static',
  ),
  buildah: brought(
    'buildah and mmdebstrap',
    () => which('mmdebstrap') && which('buildah'),
    'apt-get install buildah mmdebstrap',
  ),
  twoCpus: packaged(
    'two CPUs',
    () => (availableParallelism() < 2 ? undefined : '/sys/devices/system/cpu'),
    'run them where this process may use two CPUs or more',
  ),
  linux: packaged('Linux', () => (process.platform === 'linux' ? '/proc/self' : undefined), 'run on Linux'),
  controlPlane: brought(
    'a Kubernetes control plane',
    () =>
      hasEach(CONTROL_PLANE_PROGRAMS, assetDirectories()) ? which('kube-apiserver', assetDirectories()) : undefined,
    `put ${CONTROL_PLANE_PROGRAMS.join(', ')} into KUBEBUILDER_ASSETS or /usr/local/kubebuilder/bin`,
  ),
  ovnKubernetes: brought(
    'OVN-Kubernetes’ DPU lease code',
    () => which('ovn-kubernetes-dpu-lease', [process.env['OVN_KUBERNETES_ASSETS'] ?? '']),
    'put a program around its package dpulease, ovn-kubernetes-dpu-lease, into a folder and name it in OVN_KUBERNETES_ASSETS (docs/reference/compatibility.md)',
  ),
  kubevirt: brought(
    'the real KubeVirt',
    () => (hasEach(KUBEVIRT_PROGRAMS, kubevirtAssets()) ? kubevirtAssets()[0] : undefined),
    `put ${KUBEVIRT_PROGRAMS.join(', ')} into a folder and name it in KUBEVIRT_ASSETS (docs/maintainers/testing.md)`,
  ),
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

export function pathOf(part: PartName): string {
  const path = PARTS[part].found();
  if (path === undefined) throw new Error(`${PARTS[part].name} is missing: ${PARTS[part].install}`);
  return path;
}

export const REQUIREMENTS = ['packaged', 'all'] as const;

export function absentParts(required: (typeof REQUIREMENTS)[number]): string[] {
  return Object.values<Part>(PARTS)
    .filter((part) => (required === 'all' || part.packaged) && part.found() === undefined)
    .map(({ name, install }) => `${name} is required and missing: ${install}`);
}

export const missingParts = (): readonly (readonly [part: string, tests: number])[] => [...missing];

export function assetDirectories(): string[] {
  return [process.env.KUBEBUILDER_ASSETS, '/usr/local/kubebuilder/bin'].filter((path) => path !== undefined);
}

export function kubectls(): string[] {
  const named = process.env['KUBECTLS']?.split(delimiter).filter((path) => existsSync(path)) ?? [];
  if (named.length > 0) return named;
  const others = [which('kubectl'), which('kubectl', assetDirectories())].filter((path) => path !== undefined);
  return [...new Set(others.map((path) => realpathSync(path)))];
}

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

/** Also on the global object. */
const versionRegistry = globalThis as typeof globalThis & { plumblineVersions?: Map<string, string> };
versionRegistry.plumblineVersions ??= new Map();
const versions = versionRegistry.plumblineVersions;

/** Records the version of a real part that a test runs against. @param name `Kubernetes` */
export function noteVersion(name: string, version: string): void {
  versions.set(name, version);
}

export const notedVersions = (): readonly (readonly [name: string, version: string])[] => [...versions];
