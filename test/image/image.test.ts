import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { createHost } from '../../model/host.ts';
import { writeSysfs } from '../../sandbox/kubelet/sysfs.ts';
import { root } from '../support/bundles.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { kubeconfigOf } from '../support/kubeconfig.ts';
import { needs } from '../support/parts.ts';

const NAMES = ['webhook', 'scheduler-plugin', 'node-agent', 'console'] as const;
const NODE = '/nodejs/bin/node';

/** The base of the Dockerfile, to which these images add their files: Node.js and its libraries. */
function addBase(tree: string): void {
  mkdirSync(join(tree, dirname(NODE)), { recursive: true });
  cpSync(process.execPath, join(tree, NODE));
  const linked = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  for (const [, library = ''] of linked.matchAll(/(\/\S+) \(0x/g)) {
    mkdirSync(join(tree, dirname(library)), { recursive: true });
    cpSync(library, join(tree, library), { dereference: true });
  }
  mkdirSync(join(tree, 'tmp'));
}

describe('the images’ files', function () {
  needs('linux');
  needs('musl');
  needs('make');
  this.timeout(300_000);
  const temp = tempDirectories();
  let directory: string;
  const image = (name: string, path = '') => join(directory, name, path);
  const files = (name: string) =>
    readdirSync(image(name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(image(name).length));

  before(() => {
    directory = temp();
    const env = { ...process.env, PLUMBLINE_DIST: join(directory, 'dist') };
    const args = ['run', '--silent', 'build:image', '--', ...NAMES, '--out', directory];
    execFileSync('npm', args, { cwd: root, env, stdio: 'pipe' });
  });

  it('are the daemon and its licences; only the agent has native code, for this platform', () => {
    const terms = ['/plumbline/LICENSE', '/plumbline/THIRD-PARTY-LICENSES', '/plumbline/sbom.cdx.json'];
    const own = (name: string) => files(name).filter((path) => !terms.includes(path));
    assert.deepEqual(own('webhook').sort(), ['/plumbline/kubeconfig.cjs', '/plumbline/webhook.cjs']);
    assert.deepEqual(own('scheduler-plugin').sort(), ['/plumbline/kubeconfig.cjs', '/plumbline/scheduler-plugin.cjs']);
    const page = ['console.css', 'console.js', 'icon.svg', 'index.html'].map((file) => `/plumbline/console/${file}`);
    assert.deepEqual(own('console').sort(), ['/plumbline/console.cjs', ...page, '/plumbline/kubeconfig.cjs']);
    const agent = own('node-agent');
    assert.deepEqual(
      agent.filter((path) => path.endsWith('.node')),
      [`/plumbline/node_modules/@koromix/koffi-linux-${process.arch}/linux_${process.arch}/koffi.node`],
    );
    assert.ok(agent.includes('/plumbline/plumbline-gate'));
    for (const name of NAMES) for (const path of terms) assert.ok(files(name).includes(path), `${name}${path}`);
    assert.match(readFileSync(image('webhook', 'plumbline/THIRD-PARTY-LICENSES'), 'utf8'), /node_modules|express/);
  });

  it('are readable for an unprivileged user', () => {
    for (const name of NAMES) {
      for (const path of files(name)) assert.ok((statSync(image(name, path)).mode & 0o444) === 0o444, `${name}${path}`);
    }
    assert.ok((statSync(image('node-agent', 'plumbline/plumbline-gate')).mode & 0o111) === 0o111);
  });

  it('a wrong name or a missing folder: shows the usage, exit status 2', () => {
    for (const args of [
      ['webhooks', '--out', directory],
      ['webhook'],
      ['--out', directory],
      ['webhook', '--output', 'x'],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', 'packaging/images/run.ts', ...args], {
        cwd: root,
        encoding: 'utf8',
      });
      assert.equal(status, 2, args.join(' '));
      assert.match(stderr, /usage: npm run build:image -- webhook\|scheduler-plugin\|console\|node-agent/);
    }
  });

  it('are those that the Dockerfile puts into targets of these names, and starts', () => {
    const text = readFileSync(join(root, 'Dockerfile'), 'utf8');
    for (const name of NAMES) {
      const target = text.split(/^FROM /m).find((one) => one.split('\n')[0]?.endsWith(` AS ${name}`));
      assert.ok(target, name);
      assert.ok(target.includes(`COPY --from=build /images/${name} /\n`), name);
      assert.ok(target.includes(`ENTRYPOINT ["${NODE}", "/plumbline/${name}.cjs"]`), name);
      assert.ok(existsSync(image(name, `plumbline/${name}.cjs`)));
    }
    const users = [...text.matchAll(/^USER (\S+)$/gm)].map(([, user]) => user);
    assert.deepEqual(users, ['65532:65532', '65532:65532', '65532:65532', '0:0']);
  });

  it('are built from the engine’s context: .dockerignore names what the build reads', () => {
    const inputs = readFileSync(join(directory, 'dist/inputs.json'), 'utf8');
    const files = Object.values(JSON.parse(inputs) as Record<string, readonly string[]>).flat();
    const own = files.filter((file) => !file.includes('node_modules/') && !file.includes(':'));
    // These are read, and are in no bundle.
    const programs = ['build-console.ts', 'build.ts', 'native', 'packaging'];
    const others = ['LICENSE', 'package-lock.json', 'tsconfig.json', ...programs];
    const top = new Set(['console', 'package.json', ...others, ...own.map((file) => file.split('/')[0])]);
    const lines = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n').slice(1, -1);
    assert.deepEqual(lines, ['*', ...[...top].sort().map((name) => `!${name}`), '**/node_modules']);
  });

  it('run as the user of the manifests', () => {
    const user = (path: string) => {
      const documents = parseAllDocuments(readFileSync(join(root, 'manifests', path), 'utf8'));
      const text = JSON.stringify(documents.map((document) => document.toJS()));
      return /"runAsUser":(\d+)/.exec(text)?.[1];
    };
    const files = ['webhook/deployment.yaml', 'scheduler/deployment.yaml', 'node-agent/daemonset.yaml'];
    const all = [...files.map((file) => `base/${file}`), 'components/console/deployment.yaml'];
    assert.deepEqual(all.map(user), ['65532', '65532', '0', '65532']);
  });

  describe('with their own root directory', () => {
    needs('root');
    before(() => {
      for (const name of NAMES) addBase(image(name));
    });

    /** Only the image's tree: no /proc, no /etc, no source tree. */
    const inImage = (name: string, args: readonly string[], user = '0') =>
      spawn('chroot', [`--userspec=${user}:${user}`, image(name), NODE, `/plumbline/${name}.cjs`, ...args], {
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    const ended = async (child: ReturnType<typeof inImage>) => {
      let text = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
      const [status] = (await once(child, 'exit')) as [number | null];
      return { status, text };
    };

    for (const name of NAMES) {
      it(`${name}: prints its settings, and one line about a missing part`, async () => {
        const user = name === 'node-agent' ? '0' : '65532';
        const help = await ended(inImage(name, ['--help'], user));
        assert.deepEqual([help.status, help.text.includes(`Usage: plumbline-${name}`)], [0, true], help.text);
        const named = name === 'node-agent' ? ['--node-name', 'n'] : [];
        const started = await ended(inImage(name, named, user));
        assert.notEqual(started.status, 0);
        assert.match(
          started.text,
          /this is not a pod \(KUBERNETES_SERVICE_HOST is not set\)|open '\/etc\/plumbline\/tls\/tls.crt'/,
        );
      });
    }

    it('node-agent: runs with its native module, and stops cleanly', async () => {
      // The files that a container has of its machine.
      await writeSysfs(image('node-agent', 'sys'), createHost({ cells: [{ id: 0, cpus: '0-1' }], cores: ['0', '1'] }));
      const kubeconfig = kubeconfigOf({ server: 'https://127.0.0.1:1' }, { token: 't' });
      writeFileSync(image('node-agent', 'kubeconfig'), JSON.stringify(kubeconfig));
      const child = inImage('node-agent', ['--node-name', 'n', '--kubeconfig', '/kubeconfig', '--probe-port', '0']);
      const end = ended(child);
      let said = '';
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      await eventually(
        () => said.includes('agent started') || child.exitCode !== null,
        'it says that it has started',
        30,
      );
      assert.match(
        readFileSync(`/proc/${child.pid}/maps`, 'utf8'),
        /node-agent\/plumbline\/node_modules\/.*koffi\.node/,
      );
      child.kill('SIGTERM');
      const { status, text } = await end;
      assert.equal(status, 0, text);
      assert.doesNotMatch(text, /koffi|Cannot find module/);
    });
  });
});
