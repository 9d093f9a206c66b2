import { createServer, type Server } from 'node:http';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { vector } from '../support/vectors.ts';
import { podVector } from '../webhook/launcher-fixture.ts';
import { attacksOn } from './hostile-objects.ts';
import { NAMESPACE, PODS, type Victim, VMIS } from './victim.ts';

/** The VMI and launcher of an innocent tenant, at the end of each list. */
const innocentVmi = vector<{ metadata: { annotations?: object } }>('vmi.json');
innocentVmi.metadata.annotations = {
  ...innocentVmi.metadata.annotations,
  [PAUSED_START_ANNOTATION]: '{"state":"waiting"}',
};
const innocentPod = podVector();
Object.assign(innocentPod.metadata, { namespace: NAMESPACE, name: 'launcher', uid: 'launcher' });

/** Stands for the name of an object in the attacks, which are made once. */
const NAME = 'hostile-object';

/** Between two attacks in a list: fewer objects than attacks are attacks of all kinds. */
const STRIDE = 7;

/**
 * An API server whose lists have so many hostile objects of each kind, each attack in turn, and at the end the object of
 * an innocent tenant.
 */
export function hostileApi(schemas: Victim['schemas'], count: number): Server {
  const innocent: Record<string, { metadata?: object } | undefined> = { [VMIS]: innocentVmi, [PODS]: innocentPod };
  const attacks = new Map(
    Object.entries(schemas).map(([path, schema]) => {
      const { metadata, ...base } = innocent[path] ?? {};
      const own = { namespace: 'mallory', name: NAME, uid: NAME };
      return [path, attacksOn(schema).map(({ json }) => json({ ...base, metadata: { ...metadata, ...own } }))];
    }),
  );
  return createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    if (searchParams.has('watch')) {
      response.writeHead(200).flushHeaders();
      return;
    }
    const ofKind = attacks.get(pathname) ?? [];
    const total = ofKind.length === 0 ? 0 : count;
    const from = Number(searchParams.get('continue') ?? 0);
    const to = Math.min(from + Number(searchParams.get('limit')), total);
    const texts: string[] = [];
    // The client refuses a page of more bytes.
    for (let i = from, bytes = 0; i < to && bytes < 3_000_000; i++) {
      const text = ofKind[(i * STRIDE) % ofKind.length]?.replaceAll(NAME, `hostile-${i}`) ?? '';
      bytes += text.length;
      texts.push(text);
    }
    if (to === total && innocent[pathname] !== undefined) texts.push(JSON.stringify(innocent[pathname]));
    const page = { resourceVersion: '1', continue: to < total ? String(to) : '' };
    response.end(`{"metadata":${JSON.stringify(page)},"items":[${texts.join(',')}]}`);
  });
}
