import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';
import { KubeError } from '../kube/client.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { NAMESPACE } from '../model/names.ts';
import { accessibilityFaults, useBrowser } from './console/browser-stage.ts';
import { inventNode } from './console/cluster-fixture.ts';
import { type ConsoleFixture, type ConsoleUnderTest, consoleOf, NO_ROOM, waitingPod } from './console/fixture.ts';
import { needs } from './support/parts.ts';

const FIRST = 'worker-0.east.example.internal';
const DPU_NODE = 'worker-7.east.example.internal';
const INVENTED = 400;

/** Visible rows, by the first line of their first cell. */
const rowNames = (page: Page) => page.locator('.grid-body .row .name').allTextContents();

const isFocused = (locator: Locator) => locator.evaluate((element) => element === element.ownerDocument.activeElement);

/** Nothing is green, and every state has its age. */
async function looksOld(page: Page): Promise<void> {
  await page.locator('.line', { hasText: /^Old data: \d+ (s|min)$/ }).waitFor();
  await page.locator('main.is-old').waitFor();
  const states = await page.locator('.grid-body .row [class*=cell-] .badge').allInnerTexts();
  assert.ok(states.length > 0 && states.every((text) => /\d+ (s|min) ago$/.test(text)), states.join('; '));
  assert.doesNotMatch(await page.locator('.summary').innerText(), /healthy$/m);
  const filters = await page.evaluate<string[]>(
    `['.summary', '.list'].map((part) => getComputedStyle(document.querySelector(part)).filter)`,
  );
  assert.deepEqual(filters, ['grayscale(1)', 'grayscale(1)']);
}

describe('the page in Chromium', function () {
  needs('chromium');
  this.timeout(300_000);
  const open = useBrowser();
  let under: ConsoleUnderTest;
  const others: ConsoleUnderTest[] = [];
  beforeEach(async () => {
    under = await consoleOf({ invented: INVENTED });
    const pod = waitingPod('huge', 130);
    under.see(pod);
    under.filter(pod, [FIRST, DPU_NODE]);
  });
  afterEach(async () => {
    for (const other of others.splice(0)) await other.stop();
    await under.stop();
  });
  /** A console with other content. */
  const another = async (fixture: ConsoleFixture) => {
    const other = await consoleOf({ invented: 3, ...fixture });
    others.push(other);
    return other;
  };

  it('draws the row of each visible node and the totals, without a violation of its own policy', async () => {
    const { page, complaints } = await open(under.url);
    const names = await rowNames(page);
    assert.equal(names[0], FIRST);
    assert.ok(names.length < 40, `${names.length} rows are drawn`);
    assert.equal(await page.locator('[role=grid]').getAttribute('aria-rowcount'), String(INVENTED + 1));
    assert.match(
      await page.locator('.summary').innerText(),
      /^Nodes\s+400\s+all healthy\s.*Waiting\s+1\s.*Started VMs\s.*DPUs not ready\s+0\s+of 16$/s,
    );
    assert.equal(await page.locator('.grid-body .row').first().locator('svg.mini path.p-reserved').count(), 1);
    assert.deepEqual(complaints, []);
  });

  it('shows the whole state of a node next to an open panel, and the NUMA nodes of its networks', async () => {
    const viewport = { width: 1920, height: 1000 };
    const { page } = await open(`${under.url}/#/nodes/${DPU_NODE}?filter=dpu`, { viewport });
    await page.locator('.detail h2').waitFor();
    const states = page.locator('.cell-problems', { hasText: /Healthy.*DPU ready/ });
    await states.first().waitFor();
    const cut = await page.evaluate<number>(
      `[...document.querySelectorAll('.cell-problems')].filter((cell) => cell.scrollWidth > cell.clientWidth).length`,
    );
    assert.equal(cut, 0);
    assert.match(await page.locator('.grid-body .networks').first().innerText(), / on NUMA node \d/);
  });

  it('explains a waiting VM: the reason, and the result of every node', async () => {
    const { page, complaints } = await open(under.url);
    await page.getByRole('link', { name: /Waiting/ }).click();
    await page.getByRole('row', { name: /huge/ }).click();
    await page.getByRole('heading', { name: 'east/huge' }).waitFor();
    const groups = page.locator('.groups > li');
    await groups.first().waitFor();
    const text = (await groups.allInnerTexts()).join('; ');
    const counts = await page.locator('.groups summary .badge').allTextContents();
    const sum = counts.reduce((total, count) => total + Number(count), 0);
    assert.equal(sum, INVENTED);
    assert.match(text, /too few free whole cores|no NUMA node fits/);
    assert.match(
      await page.locator('.node-by-node').innerText(),
      /about the 2 nodes of 400 that its own filters had left; none of them could run the VM/,
    );
    await page.getByText('kube-scheduler’s message').click();
    assert.match(await page.locator('.detail').innerText(), new RegExp(NO_ROOM));
    assert.match(text, /the closest lacks \d+ CPUs/);
    // The closest node is open at the start and shows its shortage.
    assert.match(await groups.first().locator('.group-nodes li').first().innerText(), /worker-\d+/);
    assert.deepEqual(complaints, []);
    under.gone(waitingPod('huge', 130));
    await page.getByText('This pod no longer waits').waitFor();
  });

  it('keeps the address of a waiting VM when KubeVirt creates another launcher', async () => {
    const { page } = await open(under.url);
    await page.getByRole('link', { name: /Waiting/ }).click();
    const row = page.getByRole('row', { name: /huge/ });
    assert.match(await row.innerText(), /all 400 nodes: too few free whole cores/);
    await row.click();
    assert.match(page.url(), /#\/waiting\/east\/huge$/);
    const launcher = page.locator('.detail .facts div', { hasText: 'Launcher' });
    await launcher.getByText('east/virt-launcher-huge-x2x4z').waitFor();
    const first = waitingPod('huge', 130);
    const next = { ...first.metadata, name: 'virt-launcher-huge-y3y5z', uid: 'uid-next' };
    under.gone(first);
    under.see({ ...first, metadata: next } as typeof first);
    await launcher.getByText('east/virt-launcher-huge-y3y5z').waitFor();
    await page.reload();
    await launcher.getByText('east/virt-launcher-huge-y3y5z').waitFor();
    assert.equal(await page.locator('.grid-body [aria-selected=true]').count(), 1);
  });

  it('can be used with the keyboard only', async () => {
    const { page } = await open(under.url);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the list');
    await page.keyboard.press('Enter');
    const grid = page.locator('[role=grid]');
    assert.ok(await isFocused(grid));
    const active = `document.getElementById(document.querySelector('[role=grid]').getAttribute('aria-activedescendant'))`;
    const moves = [];
    for (const key of ['ArrowDown', 'ArrowDown', 'End', 'ArrowUp', 'Home', 'ArrowDown']) {
      await page.keyboard.press(key);
      moves.push((await page.evaluate<string>(`${active}.querySelector('.name').textContent`)).split('.')[0]);
    }
    assert.deepEqual(moves, ['worker-1', 'worker-2', 'worker-399', 'worker-398', 'worker-0', 'worker-1']);
    await page.keyboard.press('Enter');
    const heading = page.getByRole('heading', { name: 'worker-1.east.example.internal' });
    await heading.waitFor();
    assert.ok(await isFocused(heading));
    await page.keyboard.press('Escape');
    await heading.waitFor({ state: 'detached' });
    assert.ok(await isFocused(grid));
  });

  it('shows all data of the picture in a table', async () => {
    const { page } = await open(`${under.url}/#/nodes/${FIRST}`);
    const lists = page.locator('.owners tbody .cpus');
    await lists.first().waitFor();
    const owned = (await lists.allInnerTexts()).flatMap((list) => CpuSet.parse(list).toArray());
    assert.equal(new Set(owned).size, 128);
    assert.match(await page.locator('.owners tbody').innerText(), /the system\s*reserved/);
  });

  for (const [place, hash] of [
    ['the nodes', ''],
    ['one node', `#/nodes/${FIRST}`],
    ['the waiting VMs', '#/waiting'],
    ['an explanation', '#/waiting/east/virt-launcher-huge-x2x4z'],
  ] as const) {
    for (const colorScheme of ['light', 'dark'] as const) {
      it(`has no fault that axe finds with ${place}, ${colorScheme}`, async () => {
        const { page } = await open(`${under.url}/${hash}`, { colorScheme });
        if (place === 'an explanation') await page.locator('.groups > li').first().waitFor();
        if (place === 'one node') await page.locator('.cpu-cell').first().waitFor();
        assert.deepEqual(await accessibilityFaults(page), []);
      });
    }
  }

  it('is a grid of rows and cells for a screen reader, each row with its number and its map as text', async () => {
    const { page } = await open(under.url);
    const row = page.getByRole('grid', { name: 'Nodes' }).getByRole('row').nth(1);
    assert.equal(await row.getAttribute('aria-rowindex'), '2');
    const label = (await row.getByRole('img').getAttribute('aria-label')) ?? '';
    const hardware = '2 NUMA nodes, 64 cores, 128 CPUs';
    assert.match(label, new RegExp(`^${hardware}, \\d+ whole cores free, 4 CPUs reserved, 2 polled by Open vSwitch`));
  });

  it('has the colours of the system', async () => {
    const [dark, light] = [
      await open(under.url, { colorScheme: 'dark' }),
      await open(under.url, { colorScheme: 'light' }),
    ];
    const background = 'getComputedStyle(document.body).backgroundColor';
    assert.notEqual(await dark.page.evaluate(background), await light.page.evaluate(background));
  });

  it('shows no motion for users who prefer reduced motion', async () => {
    const { page } = await open(under.url, { reducedMotion: 'reduce' });
    const moving = await page.evaluate<number>(
      `[...document.querySelectorAll('*')].filter((one) => {
        const { transitionDuration, animationName } = getComputedStyle(one);
        return animationName !== 'none' || transitionDuration.split(', ').some((time) => parseFloat(time) > 0);
      }).length`,
    );
    assert.equal(moving, 0);
  });

  it('shows that it is disconnected, and catches up after a restart of the console', async () => {
    const { page } = await open(under.url);
    const { port } = under;
    await under.stop();
    await page.getByRole('alert').getByText('There is no connection to the console.').waitFor();
    await looksOld(page);
    assert.equal((await rowNames(page))[0], FIRST);
    under = await consoleOf({ invented: 3, port });
    await page.locator('.line.is-live').waitFor();
    await page.locator('[role=grid][aria-rowcount="4"]').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
    assert.equal(await page.locator('.is-old').count(), 0);
  });

  it('shows why the extender is not available, and the data of the API server', async () => {
    const why = 'you may not reach the extender (pods/portforward in plumbline-system)';
    const other = await another({ ask: async () => ({ why }) });
    other.see(waitingPod('huge', 130));
    const { page } = await open(`${other.url}/#/waiting/east/virt-launcher-huge-x2x4z`);
    await page.locator('.node-by-node .problem', { hasText: `Cannot reach the extender: ${why}` }).waitFor();
    await page.getByText('kube-scheduler’s message').click();
    assert.match(await page.locator('.detail').innerText(), new RegExp(NO_ROOM));
  });

  it('shows where the VMs of a node would go if it were drained, and the nodes before and after', async () => {
    const [own, other] = [inventNode(0), inventNode(1)];
    const [vm] = own.vms;
    const name = `${vm?.namespace}/${vm?.name}`;
    const asked: string[] = [];
    const drained = await another({
      invented: 2,
      async askDrain(node) {
        asked.push(node);
        const moves = { vm: name, outcome: 'migrates', to: other.name, cpus: '4-7', text: '', remedies: [] } as const;
        const stays = { outcome: 'blocks', cpus: '', text: 'it uses a device', remedies: [['stop it']] } as const;
        return { answer: { orderMatters: true, vms: [moves, { vm: 'east/tied', ...stays }], notes: ['a limit'] } };
      },
    });
    const { page } = await open(`${drained.url}/#/nodes/${own.name}`);
    const section = page.locator('section.drain');
    await section.waitFor();
    assert.deepEqual(asked, [], 'nothing is asked before someone wants to know');
    await section.getByRole('button').click();
    await section.getByText('1 of 2 VMs would migrate. Another order leaves VMs without a place.').waitFor();
    assert.deepEqual(asked, [own.name]);
    assert.match(
      await section.locator('tbody tr').first().innerText(),
      new RegExp(`${name}\\s+migrates\\s+${other.name}\\s+4-7`),
    );
    assert.match(await section.innerText(), /blocks the drain[\s\S]*stop it[\s\S]*a limit/);
    const captions = [own, other].flatMap((node) => [`${node.name}, before`, `${node.name}, after`]);
    assert.deepEqual(await section.locator('figcaption').allInnerTexts(), captions);
    const threads = [0, 1, 2, 3].map((figure) =>
      section.locator('figure').nth(figure).locator(`.thread[title*="${name}"]`).count(),
    );
    const [before = 0, ...others] = await Promise.all(threads);
    assert.ok(before > 0);
    assert.deepEqual(others, [0, 0, 4]);
  });

  it('shows a chart of what interrupts took from a VM; none without an answer', async () => {
    const [vm, idle] = inventNode(7).vms;
    const sources = ['NET_RX 412233', 'mlx5_comp3 (ens1f0) 98120'];
    const taken = { name: `${vm?.namespace}/${vm?.name}`, share: 0.0184, history: [0, null, 0.04, 0.0184], sources };
    const asked: string[] = [];
    const askInterference = async (node: string) => {
      asked.push(node);
      return { answer: { vms: [taken] } };
    };
    const other = await another({ invented: 9, askInterference });
    const { page, complaints } = await open(`${other.url}/#/vms/${taken.name}`);
    await page.getByText(`1.84 % in the last minute; most frequent: ${sources.join(', ')}`).waitFor();
    const points = await page.locator('svg.interference polyline').getAttribute('points');
    assert.equal(points, '0.0,40.0 80.0,40.0 160.0,0.0 240.0,21.6');
    assert.match(asked.join(), /^worker-7/);
    assert.deepEqual(complaints, []);
    await page.goto(`${other.url}/#/vms/${idle?.namespace}/${idle?.name}`);
    await page.getByText('Dedicated CPUs').waitFor();
    assert.equal(await page.locator('svg.interference').count(), 0);
  });

  it('shows what would help in the words of explain; without an answer, what the watches show', async () => {
    const remedies = [['stop a VM on worker-1', 'plumbline top worker-1'], ['add a larger node']] as const;
    const state = { verdict: 'broken', reason: 'TooLarge', text: 'no node is large enough' } as const;
    const answer = { ...state, causes: ['the webhook missed it'], remedies, notes: ['a limit'] };
    const diagnose = async (kind: 'vm' | 'pod') => (kind === 'vm' ? { why: 'no answer' } : { answer });
    const other = await another({ invented: 9, diagnose });
    other.see(waitingPod('huge', 130));
    other.node(DPU_NODE, { dpu: 'False' });
    const [vm] = inventNode(7).vms;
    const { page } = await open(`${other.url}/#/waiting/east/virt-launcher-huge-x2x4z`);
    await page.locator('.detail', { hasText: 'no node is large enough' }).waitFor();
    const remedyTexts = await page.locator('.remedies li').allInnerTexts();
    assert.deepEqual(remedyTexts.join('\n'), remedies.flat().join('\n'));
    assert.deepEqual(await page.locator('.remedies code').allInnerTexts(), ['plumbline top worker-1']);
    assert.match(await page.locator('.detail').innerText(), /the webhook missed it[\s\S]*a limit/);
    await page.goto(`${other.url}/#/vms/${vm?.namespace}/${vm?.name}`);
    await page.getByText('Only some causes are checked. no answer').waitFor();
    assert.match(await page.locator('.remedies li').first().innerText(), /^bring the DPU of worker-7\S+ back/);
    await page.goto(`${other.url}/#/nodes/${DPU_NODE}`);
    assert.match(await page.locator('.remedies li').first().innerText(), /^bring the DPU of worker-7\S+ back/);
  });

  const banners: [string, (other: ConsoleUnderTest) => void, RegExp][] = [
    [
      'the webhook is not ready',
      ({ api }) => api.put('deployments', { metadata: { name: 'plumbline-webhook', namespace: NAMESPACE } }),
      /^The webhook is down \(no replica is ready\): new VMs that use Plumbline do not start\. Plumbline’s scheduler has no leader.*\. plumbline doctor webhook extender shows the reason/,
    ],
    [
      'the API server fails',
      ({ api }) => api.fail('pods', new KubeError(403, 'Forbidden', 'GET /api/v1/pods: 403 Forbidden')),
      /The API server does not answer. The data is .* old; retrying. pods: GET \/api\/v1\/pods: 403 Forbidden/,
    ],
  ];
  for (const [what, happens, expected] of banners) {
    it(`reports when ${what}`, async () => {
      const other = await another({ leaderless: true });
      const { page } = await open(other.url);
      happens(other);
      await page.locator('.banner', { hasText: expected }).waitFor();
      assert.equal((await rowNames(page)).length, 3);
      if (what === 'the API server fails') await looksOld(page);
    });
  }

  it('names what is missing if Leases may not be read', async () => {
    const other = await another({ without: new Set(['leases'] as const) });
    const { page } = await open(other.url);
    await page.locator('.banner', { hasText: /You may not read leases: .*silent agents/ }).waitFor();
  });

  it('uses one column on a phone without horizontal scrolling', async () => {
    const { page } = await open(`${under.url}/#/nodes/${FIRST}`, { viewport: { width: 360, height: 720 } });
    await page.locator('.cpu-cell').first().waitFor();
    const widths = await page.evaluate<number[]>(`[document.documentElement.scrollWidth, innerWidth]`);
    assert.ok(widths[0]! <= widths[1]!, widths.join(' > '));
    assert.ok(await page.locator('.list').isHidden());
    await page.getByRole('link', { name: 'Close' }).click();
    await page.locator('.list').waitFor();
  });
});
