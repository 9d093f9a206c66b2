/** Folders of test/ whose tests have no single file or folder as their subject, and what they test instead. */
export const TIERS: Readonly<Record<string, string>> = {
  attacks: 'exploits against the daemons and the command as processes',
  demo: 'the demo and its cluster, from start to end',
  docs: 'pages, schemas, and what they say about the repository',
  faults: 'daemons that are killed, cut off or updated under load',
  fuzz: 'parsers with almost valid inputs',
  image: 'the container images',
  imports: 'who may import whom',
  kubevirt: "KubeVirt's own programs",
  lab: 'an emulated machine with a real kubelet',
  layout: 'where tests stand',
  life: 'the life of a node',
  manifests: 'the manifests as kubectl renders them',
  real: 'a real control plane, QEMU, CNI plugins',
  skew: 'parts of different versions',
  soak: 'growth over hours',
  style: 'words and sentences',
  vectors: 'recorded cases of other projects',
};

/** Tiers and folders in which a test may wait for a fixed time. */
export const MAY_SLEEP: readonly string[] = ['test/real/', 'test/faults/', 'test/lab/', 'test/soak/'];

/** Product folders: what users run. The other folders (packaging/, bench/, docs/) may have tests, and need none. */
export const PRODUCT: readonly string[] = [
  'cli',
  'console',
  'diagnosis',
  'hardware',
  'kube',
  'model',
  'native',
  'node-agent',
  'runtime',
  'sandbox',
  'scheduler-plugin',
  'webhook',
];

/** What a program in dist/ is bundled from, by the name that tests start it with. */
export const BUNDLES: Readonly<Record<string, string>> = {
  'plumbline.mjs': 'cli/main.ts',
  'webhook.cjs': 'webhook/main.ts',
  'scheduler-plugin.cjs': 'scheduler-plugin/main.ts',
  'node-agent.cjs': 'node-agent/main.ts',
  'console.cjs': 'console/server/main.ts',
  'qemu-stand-in.cjs': 'sandbox/qemu/stand-in.ts',
  buildConsole: 'console/main.tsx',
};
