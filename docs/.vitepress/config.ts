import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import packageJson from '../../package.json' with { type: 'json' };

/** The site is the Markdown of docs/, as it is: `npm run docs:site` builds it into dist/docs. */
const DOCS = resolve(import.meta.dirname, '..');
const ROOT = resolve(DOCS, '..');
/** Where files outside of docs/ are shown; in CI GitHub names the repository. Without one such links stay unlinked. */
const { GITHUB_REPOSITORY: repository, DOCS_BASE: base = '/' } = process.env;

const SECTIONS = [
  ['Get started', 'get-started'],
  ['Concepts', 'concepts'],
  ['Tasks', 'tasks'],
  ['Reference', 'reference'],
  ['For maintainers', 'maintainers'],
] as const;

const titleOf = (path: string) => /^# (.*)$/m.exec(readFileSync(path, 'utf8'))?.[1]?.replaceAll('`', '') ?? path;

const index = readFileSync(join(DOCS, 'README.md'), 'utf8');
/** The pages in the order in which the sections of the index link them. */
const ORDER = [...index.slice(index.indexOf('\n## Get started')).matchAll(/\]\(([\w/-]+\.md)/g)].map(
  ([, page]) => page,
);

/** The pages of a folder, with their own titles, in the order of the index; others follow by name. */
function pagesOf(folder: string) {
  const position = (name: string) => {
    const at = ORDER.indexOf(`${folder}/${name}`);
    return at < 0 ? ORDER.length : at;
  };
  return readdirSync(join(DOCS, folder))
    .filter((name) => name.endsWith('.md'))
    .sort((a, b) => position(a) - position(b) || (a < b ? -1 : 1))
    .map((name) => ({
      text: titleOf(join(DOCS, folder, name)),
      link: `/${folder}/${name.slice(0, -3)}`,
    }));
}

export default defineConfig({
  title: 'Plumbline',
  description: packageJson.description,
  base,
  outDir: join(ROOT, 'dist/docs'),
  cacheDir: join(ROOT, 'dist/docs-cache'),
  cleanUrls: true,
  rewrites: { 'README.md': 'index.md' },
  // Files of the repository that are no page: test/docs/links.test.ts checks these links.
  ignoreDeadLinks: [/^http:\/\/localhost/, /\.(?:\.\/)+/, /\.(?:ts|json|yaml|svg|png)$/],
  markdown: {
    config(md) {
      // Braces in code are no templates of Vue's. Indented code looks like fenced code.
      md.renderer.rules.code_block = (...args) => md.renderer.rules.fence?.(...args) ?? '';
      md.renderer.rules.code_inline = (tokens, at) =>
        `<code v-pre>${md.utils.escapeHtml(tokens[at]?.content ?? '')}</code>`;
      const render = md.renderer.rules.link_open;
      md.renderer.rules.link_open = (tokens, at, options, env, self) => {
        const token = tokens[at];
        const href = token?.attrGet('href') ?? '';
        const target = /^(?:[a-z]+:|#|\/)/.test(href) ? undefined : resolve(DOCS, env.relativePath, '..', href);
        if (token !== undefined && target !== undefined && !target.startsWith(`${DOCS}/`)) {
          const path = relative(ROOT, target);
          if (repository !== undefined) token.attrSet('href', `https://github.com/${repository}/blob/main/${path}`);
          else token.attrs = [['title', path]];
        }
        return render?.(tokens, at, options, env, self) ?? self.renderToken(tokens, at, options);
      };
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Overview', link: '/concepts/overview' },
      { text: 'Quickstart', link: '/get-started/quickstart' },
      { text: `Version ${packageJson.version}`, link: '/reference/versions' },
    ],
    sidebar: [
      {
        text: 'Documentation',
        items: [
          { text: 'Index', link: '/' },
          { text: 'Glossary', link: '/glossary' },
        ],
      },
      ...SECTIONS.map(([text, folder], i) => ({ text, collapsed: i > 3, items: pagesOf(folder) })),
    ],
  },
});
