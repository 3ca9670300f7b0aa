import { handler } from '../../../../service.mjs';

const answer = (request) => handler.fetch(request);

export { answer as DELETE, answer as GET, answer as HEAD, answer as OPTIONS, answer as POST };
