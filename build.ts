import { execFileSync } from 'node:child_process';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { buildConsole } from './build-console.ts';

/**
 * Bundles each daemon into one file in dist/, the command into dist/plumbline.mjs with its parts in dist/cli/, and the
 * console's page into dist/console.
 * koffi stays outside: it is a native module. The CNI plugin is built next to them where its compiler is installed.
 */
const ENTRIES = {
  webhook: 'webhook/main.ts',
  'scheduler-plugin': 'scheduler-plugin/main.ts',
  'node-agent': 'node-agent/main.ts',
  console: 'console/server/main.ts',
  kubeconfig: 'kube/kubeconfig.ts',
  'client-node-port-forward': 'cli/extender/client-node-port-forward.ts',
  'ovs-stand-in': 'sandbox/open-vswitch/stand-in.ts',
  'qemu-stand-in': 'sandbox/qemu/stand-in.ts',
};

/** What is imported only when needed, as a bundle of its own. @param module a module's name, or the end of its path */
function apart(module: RegExp, bundle: string): Plugin {
  return {
    name: `apart-${bundle}`,
    setup(builder) {
      builder.onResolve({ filter: module }, ({ kind }) =>
        kind === 'dynamic-import' ? { path: bundle, external: true } : undefined,
      );
    },
  };
}

/** Most of client-node is generated classes without a use here, which its package.json does not allow to leave out. */
const clientNodePruned: Plugin = {
  name: 'client-node-pruned',
  setup(builder) {
    const PACKAGE = '@kubernetes/client-node';
    // Asking esbuild for each path takes longer than the bundling.
    builder.onResolve({ filter: /^\..*\.js$/ }, ({ path, importer }) =>
      importer.includes(`/${PACKAGE}/dist/`)
        ? { path: join(importer, '..', path), sideEffects: path.endsWith('polyfill.js') }
        : undefined,
    );
    builder.onResolve({ filter: new RegExp(`^${PACKAGE}$`) }, async ({ path, pluginData, ...from }) => {
      if (pluginData === PACKAGE) return undefined;
      return { ...(await builder.resolve(path, { ...from, pluginData: PACKAGE })), sideEffects: false };
    });
  },
};

/**
 * What client-node imports for its requests and for proxies: a command reads a kubeconfig with it, and evaluating these
 * takes longer than the rest of the command. Each is evaluated at its first use.
 */
const LATE_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  undici: ['Agent', 'ProxyAgent', 'fetch'],
  socks: ['SocksClient'],
  'socks-proxy-agent': ['SocksProxyAgent'],
};

const clientNodeImportsLate: Plugin = {
  name: 'client-node-imports-late',
  setup(builder) {
    builder.onResolve({ filter: /^(undici|socks|socks-proxy-agent)$/ }, ({ path, importer, kind }) =>
      kind === 'import-statement' && importer.includes('/@kubernetes/client-node/dist/')
        ? { path, namespace: 'late' }
        : undefined,
    );
    builder.onLoad({ filter: /./, namespace: 'late' }, ({ path }) => ({
      resolveDir: import.meta.dirname,
      contents: (LATE_IMPORTS[path] ?? []).map((name) => lateExport(name, `require('${path}').${name}`)).join('\n'),
    }));
  },
};

/** A module's export that is evaluated when it is constructed, called or read. */
function lateExport(name: string, expression: string): string {
  return `export const ${name} = new Proxy(function () {}, {
  construct: (_, args) => Reflect.construct(${expression}, args),
  apply: (_, self, args) => Reflect.apply(${expression}, self, args),
  get: (_, key) => ${expression}[key],
});`;
}

/** CommonJS packages in a module of ES use these. Only the parts that need them make them, because that takes time. */
const USES_REQUIRE = /\b(?:require|__filename|__dirname)\b/;
const REQUIRE = `import{createRequire as requireOf}from"node:module";import{fileURLToPath as pathOf}from"node:url";const require=requireOf(import.meta.url),__filename=pathOf(import.meta.url),__dirname=pathOf(new URL(".",import.meta.url));`;

/** The output folder of the bundles. Callers that run them from a folder other than dist/ use the same name. */
const OUT = resolve(process.env['PLUMBLINE_DIST'] ?? 'dist');

await rm(OUT, { recursive: true, force: true });
const common = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  // Without comments a bundle is plain ASCII, which Node.js stores as one byte per character instead of two: 3 to 5 MB
  // less memory. Names and short lines stay, so that stack traces are readable.
  minifySyntax: true,
  minifyWhitespace: true,
  lineLimit: 160,
  legalComments: 'none',
  outdir: OUT,
  metafile: true,
  logLevel: 'warning',
} as const;
const programs = await build({
  ...common,
  entryPoints: ENTRIES,
  format: 'cjs',
  // A daemon loads the reader of kubeconfigs, with client-node, only for --kubeconfig.
  plugins: [apart(/\/kubeconfig\.ts$/, './kubeconfig.cjs'), clientNodePruned, clientNodeImportsLate],
  // require(): the loader of ES modules takes 20 MB for a CommonJS file of this size.
  supported: { 'dynamic-import': false },
  outExtension: { '.js': '.cjs' },
  external: ['koffi'],
});
// Each subcommand loads only its own part: compiling all of them takes longer than most of them run.
const command = await build({
  ...common,
  entryPoints: { plumbline: 'cli/main.ts' },
  format: 'esm',
  splitting: true,
  // Only a port-forward needs the whole client.
  plugins: [
    apart(/\/client-node-port-forward\.ts$/, '../client-node-port-forward.cjs'),
    clientNodePruned,
    clientNodeImportsLate,
  ],
  chunkNames: 'cli/[name]-[hash]',
  outExtension: { '.js': '.mjs' },
  external: ['koffi'],
});
for (const file of Object.keys(command.metafile.outputs)) {
  const code = await readFile(file, 'utf8');
  if (USES_REQUIRE.test(code))
    await writeFile(
      file,
      code.replace(/^(?:#!.*\n)?/, (first) => `${first}${REQUIRE}\n`),
    );
}
await cp('sandbox/api-server/gen/components.json', join(OUT, 'api-schemas.json'));
const outputs = {
  ...programs.metafile.outputs,
  ...command.metafile.outputs,
  ...(await buildConsole(join(OUT, 'console'))),
};
// The source files by bundle: the images' context, their licences and their bills of materials use this list.
const inputs = Object.entries(outputs).map(([file, output]) => [
  relative(OUT, file),
  Object.keys(output.inputs).sort(),
]);
await writeFile(join(OUT, 'inputs.json'), JSON.stringify(Object.fromEntries(inputs), undefined, 1));

try {
  execFileSync('musl-gcc', ['-dumpversion'], { stdio: 'ignore' });
  execFileSync('make', ['-s', '-C', 'native/cni', `OUT=${OUT}`], { stdio: 'inherit' });
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  console.warn('plumbline-gate is not built: musl-gcc or make is missing (npm run test:setup)');
}
