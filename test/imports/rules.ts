/** The allowed imports of the files in a folder. They may always import each other, unless `floors` restricts it. */
export interface ImportRule {
  /** Path below the root. The rules of every folder around a file apply, and the `may` of the innermost one. */
  readonly folder: string;
  /** Other top folders of the project; '*' for all. Omitted if the rule of the enclosing folder defines it. */
  readonly may?: readonly string[] | '*';
  /** Packages of npm or Node.js. Omitted: any. */
  readonly packages?: readonly string[];
  /**
   * The folders inside this one, lowest first; '.' means the files directly in it. Each may import earlier ones in the
   * list. Names in one string are on the same floor and do not import each other. All folders must be listed.
   */
  readonly floors?: readonly string[];
}

const DAEMON = ['model', 'runtime', 'kube'];

/** The allowed imports, defined only here. `npm run lint` checks every import of the repository. */
export const RULES: readonly ImportRule[] = [
  { folder: 'model', may: [], packages: ['zod'] },
  { folder: 'native', may: [] },
  { folder: 'runtime', may: ['model'] },
  { folder: 'hardware', may: ['model'] },
  { folder: 'kube', may: ['model', 'runtime'], floors: ['kubelet-api', '.', 'cluster-view'] },
  // Not for the daemons that decide: the extender and the agent have texts of their own.
  { folder: 'diagnosis', may: ['model', 'kube'] },

  // The daemons never import each other.
  { folder: 'webhook', may: DAEMON },
  {
    folder: 'scheduler-plugin',
    may: DAEMON,
    floors: ['telemetry', 'replica', 'cluster', 'filter', 'controllers', 'extender', 'http', 'wiring', '.'],
  },
  {
    folder: 'node-agent',
    may: [...DAEMON, 'native', 'hardware'],
    floors: [
      'telemetry',
      'files kube-objects',
      'lifecycle',
      'assignments host processes',
      'open-vswitch',
      'networks',
      'device-plugin dpu-lease gate interrupts ovs-affinity report vm-pinning',
      'wiring',
      '.',
    ],
  },
  { folder: 'node-agent/open-vswitch', floors: ['ovsdb', '.'] },

  {
    folder: 'sandbox',
    may: [...DAEMON, 'native'],
    floors: ['.', 'api-server', 'clients', 'kubelet scheduler virt-controller open-vswitch', 'qemu', 'cluster'],
  },
  {
    folder: 'cli',
    may: ['diagnosis', 'model', 'runtime', 'kube', 'native', 'hardware', 'sandbox', 'console/server', 'console/data'],
    floors: [
      'support',
      'extender',
      'agent explain',
      'doctor drain',
      'completion console cpu-mask demo interference ovs qemu simulate status top topology verify version vm',
      'bug-report',
      '.',
    ],
  },
  { folder: 'cli/doctor', floors: ['facts', 'checks', '.'] },
  { folder: 'console', may: ['model'], floors: ['data', 'state', 'parts', '. server'] },
  { folder: 'console/data', may: ['model'] },
  { folder: 'console/server', may: ['diagnosis', ...DAEMON, 'console/data'] },

  { folder: 'packaging', may: '*' },
  { folder: 'docs', may: '*' },
  { folder: 'bench', may: '*' },
  { folder: 'test', may: '*' },
];
