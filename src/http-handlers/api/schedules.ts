/** `/schedules...`: the schedules of ensembles, their pause, and a run out of turn. */

import { byId, pageOfList } from '../reply/page-of-list.ts';
import { page } from '../request/read-query.ts';
import { call } from './define-call.ts';

export const scheduleCalls = [
  call('GET /schedules', {
    id: 'listSchedules',
    summary: 'Lists schedules',
    scope: 'read:ensembles',
    query: page,
    replies: { 200: 'Schedules' },
    async run(given) {
      const schedules = [...(await given.orchestrator.schedules.list())].sort((a, b) => byId(a.id, b.id));
      return pageOfList(given, 'schedules', schedules, { idOf: ({ id }) => id });
    },
  }),
  call('POST /schedules/:id/pause', {
    id: 'pauseSchedule',
    summary: 'Drops its ticks',
    scope: 'write:ensembles',
    of: 'schedule',
    findsItself: true,
    replies: { 200: 'Schedule' },
    run: ({ orchestrator, id }) => orchestrator.schedules.pause(id),
  }),
  call('POST /schedules/:id/resume', {
    id: 'resumeSchedule',
    summary: 'Lets it start again',
    scope: 'write:ensembles',
    of: 'schedule',
    findsItself: true,
    replies: { 200: 'Schedule' },
    run: ({ orchestrator, id }) => orchestrator.schedules.resume(id),
  }),
  call('POST /schedules/:id/run', {
    id: 'runSchedule',
    summary: 'Starts an execution now',
    scope: 'execute:ensembles',
    of: 'schedule',
    findsItself: true,
    replies: { 202: 'Accepted' },
    async run({ orchestrator, id, principal }) {
      const { id: executionId } = await orchestrator.schedules.run(id, principal ? { principal } : {});
      return { executionId, status: 'queued' as const };
    },
    location: ({ executionId }) => `/executions/${executionId}`,
  }),
] as const;
