import { dirname, posix } from 'node:path';

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
const MAY_SLEEP: readonly string[] = ['test/real/', 'test/faults/', 'test/lab/', 'test/soak/'];

/** Product folders: what users run. The other folders (packaging/, bench/, docs/) may have tests, and need none. */
const PRODUCT: readonly string[] = [
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

const BUNDLES: Readonly<Record<string, string>> = {
  'plumbline.mjs': 'cli/main.ts',
  'webhook.cjs': 'webhook/main.ts',
  'scheduler-plugin.cjs': 'scheduler-plugin/main.ts',
  'node-agent.cjs': 'node-agent/main.ts',
  'console.cjs': 'console/server/main.ts',
  'qemu-stand-in.cjs': 'sandbox/qemu/stand-in.ts',
  buildConsole: 'console/main.tsx',
};

export type Tree = ReadonlyMap<string, string>;

export interface LayoutFault {
  readonly file: string;
  readonly fault: string;
}

const SOURCE = /\.(?:ts|tsx|cjs)$/;
const TEST = /\.(?:test|long)\.ts$/;
const SUBJECT_ENDINGS = ['.ts', '.tsx', '.c'];
/** `from '…'`, `import '…'`, `import('…')`, `require('…')` of a file of ours. */
const IMPORT = /(?:\bfrom |^import |\bimport\(\s*|\brequire\(\s*)'(\.[^']+)'/gm;
const PATH = /['"`/]((?:[\w-]+\/)+[\w.-]+\.(?:ts|tsx))['"`]/g;
const SHARED_NAME = /^(?:(?:.+-)?fixture|(?:.+-)?stage|.+-stand-in|support)$/;
const PROGRAM_NAME = /^(?:run|generate)$/;
/** Files without it have only types and data. */
const CODE = /=>|\b(?:function|class)\b/;
/** A pause of a given length, unless it only paces a loop. */
const SLEEP = /^(?!.*\bwhile \().*\bawait (?:sleep|delay|pause)\(|\bsetTimeout\((?:resolve|done), *[\d_]+/gm;

export function misplacedTests(tree: Tree): LayoutFault[] {
  const folders = foldersOf(tree);
  return testsOf(tree)
    .filter((file) => !hasSubject(subjectOf(file), tree, folders))
    .map((file) => ({ file, fault: `there is neither a file nor a folder ${subjectOf(file)}, nor such a tier` }));
}

/** Files that tests share, without one of the four names. A folder with a run.ts is a program, named like a product. */
export function misnamedShared(tree: Tree): LayoutFault[] {
  const programs = [...tree.keys()].filter((file) => /\/run(?:\.test)?\.ts$/.test(file)).map(dirname);
  return [...tree.keys()]
    .filter((file) => /^test\/.+\/.+/.test(file) && SOURCE.test(file) && !TEST.test(file))
    .filter((file) => !file.startsWith('test/support/'))
    .filter((file) => !programs.some((folder) => folder !== 'test' && file.startsWith(`${folder}/`)))
    .filter((file) => !SHARED_NAME.test(baseOf(file)) && !PROGRAM_NAME.test(baseOf(file)))
    .map((file) => ({ file, fault: 'not named fixture, stage, stand-in or support' }));
}

/** Product files that no test at their own path, or at the path of a folder around them, imports or starts. */
export function unreachedFiles(tree: Tree): LayoutFault[] {
  const closures = new Map<string, ReadonlySet<string>>();
  const closureOf = (test: string) => {
    const closure = closures.get(test) ?? reachedFrom(test, tree);
    closures.set(test, closure);
    return closure;
  };
  return [...tree.keys()]
    .filter((file) => isProduct(file) && CODE.test(tree.get(file) ?? ''))
    .flatMap((file) => {
      const tests = testsFor(file).filter((test) => tree.has(test));
      if (tests.some((test) => closureOf(test).has(file))) return [];
      const fault = tests.length === 0 ? `no ${testsFor(file).join(' or ')}` : `not reached by ${tests.join(' or ')}`;
      return [{ file, fault }];
    });
}

/** Tests that wait for a fixed time, outside of the tiers that may. */
export function fixedSleeps(tree: Tree): LayoutFault[] {
  return [...tree]
    .filter(([file]) => file.startsWith('test/') && SOURCE.test(file))
    .filter(([file]) => !file.startsWith('test/support/') && !file.startsWith('test/layout/'))
    .filter(([file]) => !MAY_SLEEP.some((folder) => file.startsWith(folder)))
    .flatMap(([file, text]) => {
      const count = text.match(SLEEP)?.length ?? 0;
      return count === 0 ? [] : [{ file, fault: `${count} fixed sleeps: wait for an event with eventually or until` }];
    });
}

export const RULES = { misplacedTests, misnamedShared, unreachedFiles, fixedSleeps } as const;

const isProduct = (file: string): boolean =>
  /\.tsx?$/.test(file) && !file.includes('/gen/') && PRODUCT.includes(file.split('/')[0] ?? '');

/** Where the tests of a product file may stand: at its path, its folder's, or that of a folder inside a product folder. */
function testsFor(file: string): string[] {
  const paths = [file.replace(/\.tsx?$/, ''), dirname(file)];
  for (let folder = dirname(dirname(file)); folder.includes('/'); folder = dirname(folder)) paths.push(folder);
  return paths.map((path) => `test/${path}.test.ts`);
}

const testsOf = (tree: Tree): string[] =>
  [...tree.keys()].filter((file) => file.startsWith('test/') && TEST.test(file));

/** What a test is about by its path: `test/github/workflows.test.ts` is about .github/workflows. */
const subjectOf = (test: string): string =>
  test
    .slice('test/'.length)
    .replace(TEST, '')
    .replace(/^github\//, '.github/');

function hasSubject(subject: string, tree: Tree, folders: ReadonlySet<string>): boolean {
  if (Object.hasOwn(TIERS, subject.split('/')[0] ?? '')) return true;
  // The code of tests has its tests next to it.
  const paths = [subject, `test/${subject}`];
  return folders.has(subject) || paths.some((path) => SUBJECT_ENDINGS.some((ending) => tree.has(`${path}${ending}`)));
}

function foldersOf(tree: Tree): Set<string> {
  const folders = new Set<string>();
  for (const file of tree.keys()) {
    for (let folder = dirname(file); folder !== '.'; folder = dirname(folder)) folders.add(folder);
  }
  return folders;
}

function reachedFrom(test: string, tree: Tree): Set<string> {
  const reached = new Set([test]);
  const open = [test];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const target of targetsOf(file, tree)) {
      if (reached.has(target) || !tree.has(target)) continue;
      reached.add(target);
      open.push(target);
    }
  }
  return reached;
}

function targetsOf(file: string, tree: Tree): string[] {
  const text = tree.get(file) ?? '';
  const imported = [...text.matchAll(IMPORT)].map(([, path = '']) => posix.join(dirname(file), path));
  if (!file.startsWith('test/')) return imported;
  const named = [...text.matchAll(PATH)].map(([, path = '']) => path.replace(/^.*\.\.\//, ''));
  const bundled = Object.entries(BUNDLES).flatMap(([name, source]) => (text.includes(name) ? [source] : []));
  return [...imported, ...named, ...bundled];
}

const baseOf = (file: string): string => posix.basename(file).replace(SOURCE, '');
