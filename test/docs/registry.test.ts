import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { RELEASE_ANNOTATION } from '../../cli/support/objects.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { root } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';
import { projectFiles } from '../support/project-files.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
/** The only constant for the place of images and chart. The repository with the files of a release has the same name. */
const REGISTRY = read('packaging/registry.txt').trim();
const REPOSITORY = REGISTRY.replace(/^ghcr\.io\//, '');
const NAMES = ['webhook', 'scheduler-plugin', 'node-agent', 'console'].map((name) => `plumbline-${name}`);
const { version } = packageJson;

const FILES = projectFiles().filter((path) => /(?:\.(?:md|tsx?|ya?ml|tpl|sh|json)|Dockerfile)$/.test(path));

/** Texts of files that match a pattern, each with its file. Tests name wrong places on purpose. */
const matches = (pattern: RegExp) =>
  FILES.filter((path) => !path.startsWith('test/')).flatMap((path) =>
    [...read(path).matchAll(pattern)].map(([text]) => `${path}: ${text}`),
  );

interface Image {
  readonly name: string;
  readonly newName?: string;
  readonly newTag?: string;
}

/** The `images:` of kustomizations: of files, and of the YAML blocks of pages. */
function kustomizations(): { readonly path: string; readonly images: readonly Image[] }[] {
  const texts = FILES.flatMap((path) => {
    if (path.endsWith('kustomization.yaml')) return [{ path, text: read(path) }];
    if (!path.endsWith('.md')) return [];
    return [...read(path).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => ({ path, text }));
  });
  return texts.flatMap(({ path, text }) =>
    parseAllDocuments(text).flatMap((document) => {
      const { images } = (document.toJS() ?? {}) as { images?: unknown };
      return Array.isArray(images) ? [{ path, images: images as Image[] }] : [];
    }),
  );
}

describe('where Plumbline is obtained', () => {
  it('is one registry, in every file that names one of ghcr.io', () => {
    const named = matches(/ghcr\.io\/[a-z][\w./-]*/g);
    assert.ok(named.length >= 15, `${named.length}`);
    assert.equal(named.filter((one) => !one.includes(`: ${REGISTRY}`)).join(), '');
  });

  it('is one repository of GitHub, with the files of this version', () => {
    const named = matches(/github\.com\/[\w-]+\/plumbline\b[\w./-]*/g);
    assert.ok(named.length >= 3, `${named.length}`);
    assert.equal(named.filter((one) => !one.includes(`github.com/${REPOSITORY}`)).join(), '');
    for (const [, tag] of named.join('\n').matchAll(/releases\/\w+\/v([\d.]+\d)/g)) assert.equal(tag, version);
    const files = matches(/plumbline-dev-plumbline-\d[\d.]*\d\.tgz/g);
    assert.ok(files.length >= 2 && files.every((file) => file.endsWith(`plumbline-dev-plumbline-${version}.tgz`)));
  });

  it('has one version in package.json, the lock file, the chart and the changelog', () => {
    const lock = JSON.parse(read('package-lock.json')) as { version: string };
    const chart = parse(read('manifests/chart/plumbline/Chart.yaml')) as Record<string, string>;
    const newest = /^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1];
    assert.deepEqual([lock.version, chart['version'], chart['appVersion'], newest], Array(4).fill(version));
  });

  it('is the default of the chart, and what the release workflow sets', () => {
    const { images } = parse(read('manifests/chart/plumbline/values.yaml')) as { images: { registry: string } };
    assert.equal(images.registry, REGISTRY);
    const workflow = parse(read('.github/workflows/release.yml')) as {
      env: { REGISTRY: string };
      jobs: Record<string, { steps: { run?: string }[] }>;
    };
    assert.equal(workflow.env.REGISTRY, `ghcr.io/\${{ github.repository }}`);
    const runs = Object.values(workflow.jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    const scripts = ['image.sh', 'chart.sh', 'chart-push.sh', 'release-files.sh'];
    for (const script of scripts) {
      const run = runs.find((run) => run.startsWith(`packaging/${script} `));
      assert.match(run ?? '', / "\$REGISTRY"$/, script);
    }
  });

  it('is in every image that a kustomization sets; one that replaces the registry names all images', () => {
    const samples = kustomizations();
    assert.ok(samples.some(({ path }) => path === 'docs/tasks/install.md'));
    for (const { path, images } of samples) {
      const own = images.filter(({ name }) => name.includes('plumbline-'));
      for (const { name, newName = '', newTag } of own) {
        const [short = ''] = /[^/]*$/.exec(name) ?? [];
        assert.ok(NAMES.includes(short), `${path}: ${name}`);
        assert.match(newName, new RegExp(`^[\\w.-]+/.*${short}$`), `${path}: ${name}`);
        if (name === short) assert.deepEqual([newName, newTag], [`${REGISTRY}/${short}`, version], path);
        else assert.equal(name, `${REGISTRY}/${short}`, path);
      }
      const replaced = own.filter(({ name }) => name.startsWith(REGISTRY)).map(({ name }) => name);
      if (replaced.length > 0)
        assert.deepEqual(replaced.sort(), NAMES.map((name) => `${REGISTRY}/${name}`).sort(), path);
    }
  });

  it('is not npm’s registry: no page, hint or script names npx plumbline', () => {
    assert.deepEqual(matches(/npx (?:kubectl-)?plumbline/g), []);
  });
});

describe('the rendered images', function () {
  needs('kubectl');
  this.timeout(300_000);

  const imagesIn = (yaml: string) => [...yaml.matchAll(/^\s+(?:- )?image: (\S+)$/gm)].map(([, image = '']) => image);

  for (const [folder, ...components] of [
    ['base', 'components/console', 'components/kubernetes-1.37'],
    ['base', 'scheduler/loopback'],
    ...readdirSync(join(root, 'manifests/overlays')).map((name) => [`overlays/${name}`]),
  ]) {
    it(`${[folder, ...components].join(' with ')}: are complete`, () => {
      const images = imagesIn(render(folder ?? '', components));
      assert.ok(images.length > 0);
      for (const image of images) {
        const [name = '', tag] = image.split(':');
        if (name === 'registry.k8s.io/kube-scheduler') assert.match(tag ?? '', /^v1\.\d+\.\d+$/);
        else
          assert.ok(
            NAMES.some((name) => image === `${REGISTRY}/${name}:${version}`),
            image,
          );
      }
    });
  }

  it('of the static pod are complete', () => {
    const images = imagesIn(read('manifests/scheduler/loopback/plumbline-scheduler-plugin.yaml'));
    assert.deepEqual(images, [`${REGISTRY}/plumbline-scheduler-plugin:${version}`]);
  });

  const release = (...args: string[]) => spawnSync('packaging/manifest.sh', args, { cwd: root, encoding: 'utf8' });
  const minors = readdirSync(join(root, 'manifests/components')).flatMap(
    (name) => /^kubernetes-(.*)/.exec(name)?.[1] ?? [],
  );

  for (const minor of minors) {
    it(`of the release file for Kubernetes ${minor} are those of the base, as are all objects`, () => {
      const { status, stdout, stderr } = release(minor);
      assert.equal(status, 0, stderr);
      const released = objectsOf(stdout) as { kind: string; metadata: { annotations?: Record<string, string> } }[];
      for (const { kind, metadata } of released.filter((one) => one.kind === 'Namespace')) {
        assert.deepEqual(metadata.annotations, { [RELEASE_ANNOTATION]: `${version} ${minor} ${REGISTRY}` }, kind);
        delete metadata.annotations;
      }
      assert.deepEqual(released, objectsOf(render('base', [`components/kubernetes-${minor}`])));
    });
  }

  it('of the release file of a fork are in its registry, in lower case', () => {
    const images = imagesIn(release('1.36', 'registry.example.org/Fork').stdout);
    const own = images.filter((image) => !image.startsWith('registry.k8s.io/'));
    assert.ok(own.length >= 4);
    for (const image of own)
      assert.match(image, new RegExp(`^registry\\.example\\.org/fork/plumbline-[a-z-]+:${version}$`));
  });
});
