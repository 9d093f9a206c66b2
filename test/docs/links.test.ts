import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root } from '../support/bundles.ts';
import { projectFiles } from '../support/project-files.ts';

const markdown = (folder: string, recursive = false) =>
  readdirSync(join(root, folder), { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.includes('node_modules'))
    .map((name) => join(folder, name));

const PAGES = [...markdown('.'), ...markdown('docs', true), ...markdown('manifests', true), ...markdown('packaging')];
const INDEX = 'docs/README.md';
/** Maximum lines of a page of the documentation. */
const MAX_PAGE_LINES = 200;

const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

/** The anchors of a page's headings. Source: GitHub's anchors. */
function anchorsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

/** Targets of a page's links into the repository, as written. */
function linksOf(page: string): string[] {
  const text = textOf(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

const fileOf = (page: string, target: string) => {
  const [path = ''] = target.split('#');
  return path === '' ? page : join(dirname(page), path);
};

/** Links of a page into the repository without a target. */
function deadLinks(page: string): string[] {
  return linksOf(page).filter((target) => {
    const [, anchor] = target.split('#');
    const file = join(root, fileOf(page, target));
    if (!existsSync(file)) return true;
    return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor);
  });
}

/** The pages of docs/ that a reader of one page reaches by links. */
function reachedFrom(page: string, reached = new Set<string>()): Set<string> {
  if (reached.has(page)) return reached;
  reached.add(page);
  for (const target of linksOf(page)) {
    const file = fileOf(page, target);
    if (file.startsWith('docs/') && file.endsWith('.md') && existsSync(join(root, file))) reachedFrom(file, reached);
  }
  return reached;
}

/** Names of pages outside of links, such as `docs/tasks/install.md`, with the file that contains them. */
function namedPages(): (readonly [string, string])[] {
  return TRACKED.filter((file) => /\.(?:md|ts|tsx|ya?ml|sh|txt|json)$/.test(file)).flatMap((file) =>
    [...textOf(file).matchAll(/(?<![\w/.-])docs\/[\w/-]+\.(?:md|yaml|svg|png|json)\b/g)].map(
      ([name]) => [file, name] as const,
    ),
  );
}

/** Files and folders that git tracks, without a trailing slash. */
const TRACKED = projectFiles();
const TRACKED_PATHS = new Set(
  TRACKED.flatMap((file) => file.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'))),
);
const TOP_FOLDERS = new Set(TRACKED.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));
const BASENAMES = new Set(TRACKED.map((file) => basename(file)));

/** Paths in backticks: below a top folder of the repository, or the bare name of a source file. */
function quotedPaths(page: string): string[] {
  return [...textOf(page).matchAll(/`([^`\s<]+)`/g)]
    .map(([, quoted = '']) => quoted.replace(/\/$/, ''))
    .filter((quoted) =>
      quoted.includes('/') ? TOP_FOLDERS.has(quoted.split('/')[0]) : /^\w[\w.-]*\.(?:ts|tsx|c|cjs)$/.test(quoted),
    );
}

/** Whether a quoted path names something in the repository; tests may be named as in docs/maintainers/conformance.md. */
function pathExists(path: string): boolean {
  if (!path.includes('/')) return BASENAMES.has(path);
  if (path.includes('*')) {
    const pattern = new RegExp(`^${path.replaceAll(/[.+^$()|[\]\\]/g, '\\$&').replaceAll(/\*+/g, '.*')}$`);
    return [...TRACKED_PATHS].some((tracked) => pattern.test(tracked));
  }
  return TRACKED_PATHS.has(path) || TRACKED_PATHS.has(`test/${path}.test.ts`);
}

describe('links within the documentation', () => {
  it('have a target', () => {
    assert.ok(PAGES.length > 40);
    const dead = PAGES.flatMap((page) => deadLinks(page).map((target) => `${page}: ${target}`));
    assert.deepEqual(dead, []);
  });

  it('reach every page of docs/ from its index', () => {
    const reached = reachedFrom(INDEX);
    assert.equal(PAGES.filter((page) => page.startsWith('docs/') && !reached.has(page)).join(), '');
  });

  it('are complete: every page that code, manifests and pages name exists', () => {
    const named = namedPages();
    assert.ok(named.length > 50, `${named.length}`);
    assert.equal(named.filter(([, name]) => !existsSync(join(root, name))).join(), '');
  });

  it('include the paths in backticks: files and folders of the repository', () => {
    const quoted = PAGES.flatMap((page) => quotedPaths(page).map((path) => ({ page, path })));
    assert.ok(quoted.length > 200, `${quoted.length}`);
    assert.equal(
      quoted
        .filter(({ path }) => !pathExists(path))
        .map(({ page, path }) => `${page}: ${path}`)
        .join(),
      '',
    );
  });
});

describe('the pages of docs/', () => {
  const lengths = PAGES.filter((page) => page.startsWith('docs/')).map((page) => ({
    page,
    lines: textOf(page).trimEnd().split('\n').length,
  }));

  it(`have at most ${MAX_PAGE_LINES} lines`, () => {
    assert.equal(lengths.flatMap(({ page, lines }) => (lines > MAX_PAGE_LINES ? [page] : [])).join(), '');
  });

  it('start with one title', () => {
    const titles = ({ page }: { page: string }) =>
      textOf(page)
        .replaceAll(/^```[\s\S]*?^```/gm, '')
        .match(/^# .+$/gm) ?? [];
    const wrong = lengths.filter((length) => titles(length).length !== 1 || !textOf(length.page).startsWith('# '));
    assert.deepEqual(wrong, []);
  });
});
