import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { stringify } from 'yaml';
import { readArguments, required, runScript, UsageError } from './arguments.ts';

/**
 * Prints the manifest with which `kubectl krew` installs the command: the address and checksum of each archive.
 * Source: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
 */
const USAGE = 'npm run build:krew -- --version VERSION --base-url URL FILE-linux-amd64.tar.gz FILE-linux-arm64.tar.gz';

const ARCHITECTURES = ['amd64', 'arm64'];
const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;

/** The address of an archive, and the files of it that krew installs. */
async function platform(file: string, baseUrl: string): Promise<object> {
  const arch = ARCHITECTURES.find((one) => file.endsWith(`-linux-${one}.tar.gz`));
  if (arch === undefined)
    throw new UsageError(`${file}: expected a name that ends in -linux-amd64.tar.gz or -linux-arm64.tar.gz`);
  const bytes = await readFile(file).catch((error: Error) => {
    throw new UsageError(`${file} cannot be read: ${error.message}`);
  });
  return {
    selector: { matchLabels: { os: 'linux', arch } },
    uri: `${baseUrl.replace(/\/+$/, '')}/${basename(file)}`,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    files: ['plumbline', 'LICENSES'].map((name) => ({ from: name, to: '.' })),
    bin: 'plumbline',
  };
}

async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = readArguments(args, { version: { type: 'string' }, 'base-url': { type: 'string' } });
  const version = required(values.version, 'version');
  const baseUrl = required(values['base-url'], 'base-url');
  if (!VERSION.test(version)) throw new UsageError(`--version ${version}: expected one as 1.2.3, without a v`);
  if (!/^https:\/\//.test(baseUrl))
    throw new UsageError(`--base-url ${baseUrl}: expected one that begins with https://`);
  if (positionals.length === 0) throw new UsageError('name at least one archive');
  const manifest = {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'plumbline' },
    spec: {
      version: `v${version}`,
      shortDescription: 'Explain CPU and NUMA placement of VMs',
      description:
        'Says why a KubeVirt virtual machine with dedicated CPUs does not run, node by node, and what would help; shows\n' +
        'who owns which CPU of a node, and checks the installation of Plumbline.\n',
      caveats: 'Plumbline must be installed in the cluster: kubectl plumbline doctor\n',
      platforms: await Promise.all(positionals.map((file) => platform(file, baseUrl))),
    },
  };
  process.stdout.write(stringify(manifest, { lineWidth: 0 }));
}

await runScript(USAGE, main);
