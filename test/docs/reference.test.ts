import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATED, LOG_MESSAGES, pageOf } from '../../docs/generate-reference.ts';
import * as names from '../../model/names.ts';
import { KUBELET_CONFIG_CONDITION, KUBELET_RUN_CONDITION } from '../../model/names.ts';
import type { WebhookLogger } from '../../webhook/telemetry/log-messages.ts';
import { root } from '../support/bundles.ts';
import { projectFiles } from '../support/project-files.ts';

const FOLDER = 'docs/reference';
const textOf = (page: string) => readFileSync(join(root, FOLDER, page), 'utf8');
/** The code spans of the first column of the tables in a text. */
const firstColumn = (text: string) =>
  [...text.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );

const sourcesIn = (...folders: readonly string[]) => projectFiles(...folders).filter((file) => file.endsWith('.ts'));
const daemonFiles = sourcesIn('webhook', 'scheduler-plugin', 'node-agent', 'console/server', 'runtime', 'kube');
const sources = sourcesIn('model', 'webhook', 'scheduler-plugin', 'node-agent').map((file) =>
  readFileSync(join(root, file), 'utf8'),
);

describe('generated pages', () => {
  for (const name of Object.keys(GENERATED)) {
    it(`${FOLDER}/${name} is up to date with the code (npm run docs:reference)`, () => {
      assert.equal(textOf(name), pageOf(name, textOf(name)));
    });
  }
});

describe(`${FOLDER}/api.md`, () => {
  const own = Object.values(names).filter(
    (value) => typeof value === 'string' && /plumbline\.dev\/|kubevirt\.io\//.test(value),
  );
  const [page = ''] = textOf('api.md').split('\n## NodeTopology\n');

  it('has every name of model/names.ts', () => {
    assert.ok(own.length > 15);
    assert.equal(own.filter((name) => !page.includes(`\`${String(name)}`)).join(), '');
  });

  it('has no name that the code does not have', () => {
    const texts = sources.join('\n');
    const spans = firstColumn(page).map((name) => name.replace(/<\w+>$/, ''));
    assert.ok(spans.length > 20);
    assert.equal(spans.filter((name) => !texts.includes(name)).join(), '');
  });
});

describe(`${FOLDER}/log-messages.md`, () => {
  // The type of a daemon's logger permits only these texts. This file does not compile if it permits others.
  const misuse = (log: WebhookLogger) => {
    // @ts-expect-error: no message of the webhook
    log.info({}, 'not in the table');
    // @ts-expect-error: of another level
    log.info({}, 'launcher refused');
    // @ts-expect-error: of another daemon
    log.info('pod placed');
    log.info({}, 'launcher padded to whole cores');
  };

  it('has only messages of its tables, by the types of the loggers', () => assert.equal(misuse.length, 1));

  const folders: Readonly<Record<string, RegExp>> = {
    webhook: /^webhook/,
    'scheduler-plugin': /^scheduler-plugin/,
    'node-agent': /^node-agent/,
    console: /^console/,
    'every daemon': /^(runtime|kube)/,
  };
  for (const [daemon, byLevel] of Object.entries(LOG_MESSAGES)) {
    it(`has no message of ${daemon} that its code does not log`, () => {
      const code = daemonFiles.filter((file) => folders[daemon]?.test(file) && !file.endsWith('log-messages.ts'));
      const texts = code.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
      const messages = Object.values(byLevel).flatMap((list) => Object.keys(list));
      const unused = messages.filter((message) => !texts.includes(`'${message}'`) && !texts.includes(`\`${message}$`));
      assert.deepEqual(unused, []);
    });
  }

  it('no file of a daemon goes around the types: none uses the logger of the library', () => {
    const around = daemonFiles.filter(
      (file) => file !== 'runtime/log.ts' && readFileSync(join(root, file), 'utf8').includes("'pino'"),
    );
    assert.deepEqual(around, []);
  });

  it('has at most 1,250 words', () => {
    const words = textOf('log-messages.md').split(/\s+/).length;
    assert.ok(words <= 1250, `${words} words`);
  });
});

const [events = '', conditions = ''] = textOf('events.md').split('## Conditions of a NodeTopology\n');

describe(`the conditions in ${FOLDER}/events.md`, () => {
  it('has exactly the conditions that the agent reports', () => {
    const report = readFileSync(join(root, 'node-agent/report/status.ts'), 'utf8');
    const named: Readonly<Record<string, string>> = { KUBELET_CONFIG_CONDITION, KUBELET_RUN_CONDITION };
    const reported = [...report.matchAll(/conditionOf\(\s*(?:'(\w+)'|(\w+_CONDITION))/g)].map(
      ([, type, constant = '']) => type ?? named[constant] ?? constant,
    );
    const limits = readFileSync(join(root, 'node-agent/report/limits.ts'), 'utf8');
    const [, complete = ''] = /type: '(\w+)'/.exec(limits) ?? [];
    assert.ok(reported.length > 6);
    const [ofTopologies = ''] = conditions.split('## Condition of a Node\n');
    const listed = [...ofTopologies.matchAll(/^\| `(\w+)`/gm)].map(([, type = '']) => type);
    assert.deepEqual(listed.toSorted(), [...new Set([...reported, complete])].toSorted());
  });
});

describe(`the Events in ${FOLDER}/events.md`, () => {
  /** The forms in which the daemons write the reason of an Event. */
  const RECORDED = [
    /type: '(?:Normal|Warning)', reason: '(\w+)'/g,
    /(?:note\(\{ reason: |warn\(|say\(pod, )'(\w+)'/g,
    /record\(launcher, '\w+', '(\w+)'/g,
    /\bevent(?:: | = )'(\w+)'/g,
    /[?:=] \['((?:DPU|Evicted)\w+)', /g,
    /HOUSEKEEPING = '([A-Z]\w+)'/g,
    /^ {2}(?:pinned|refused|unpinned): '(CPUMask\w+)'/gm,
    /\['\w+', '(CPUMask\w+)'\]/g,
    /readonly reason: '(NetworkElsewhere)' \| 'SplitCores'/g,
  ];
  const listed = firstColumn(events);

  it('has every reason that the daemons record', () => {
    const recorded = RECORDED.flatMap((pattern) =>
      sources.flatMap((source) => [...source.matchAll(pattern)].map(([, reason = '']) => reason)),
    );
    assert.ok(new Set(recorded).size > 20, recorded.join());
    assert.equal([...new Set(recorded)].filter((reason) => !listed.includes(reason)).join(), '');
  });

  it('has no reason that the code does not have', () => {
    const texts = sources.join('\n');
    assert.ok(listed.length > 35);
    assert.equal(listed.filter((reason) => !texts.includes(`'${reason}'`)).join(), '');
  });
});

describe('the figures of the README', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');

  it('are those of the linked pages', () => {
    const pods = [...textOf('compatibility.md').matchAll(/^\| 1\.\d+\.\d+ +\| (\d+) +\| 0 /gm)];
    const sum = pods.reduce((total, [, count = '0']) => total + Number(count), 0);
    assert.match(readme, new RegExp(`${sum} random pods on real kubelets`));
    const delay = (row: string) =>
      new RegExp(`^\\| ${row} \\| [^|]+ \\| (\\d+ µs) `, 'm').exec(textOf('outcome.md'))?.[1];
    const [agent, loop, unmanaged] = ['Plumbline', 'loop, every second', 'unmanaged'].map(delay);
    const figures = `1 % of packets wait longer than ${agent}; ${loop} with a loop every second, ${unmanaged} unmanaged`;
    assert.ok(readme.includes(figures), figures);
  });

  it('fit on a screen', () => assert.ok(readme.trimEnd().split('\n').length <= 60));
});
