/* The usual traced call, as traced() and record() of wrappers.py make it, in less time: an array
   that the function knows, and no queue on a device. Every other call goes on in Python, so what
   is counted is the same with and without this part.

   It has no frame of Python: a traceback or a warning of the program sees the original alone. So it
   must not stand where Python asks whose frame is above (calls inside a call), nor where a profiler
   wants to see the call of a function in C. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>
#include <time.h>

#if PY_VERSION_HEX < 0x030B0000 || defined(Py_GIL_DISABLED)
#error "The whole of the tracer is Python's here: it counts under no lock but that of Python."
#endif

/* What stands at which place: ways.py (Site) and rows.py (the numbers). */
enum { CODE, AT, ROW, MADE, ADDRESS, KNOWN_DTYPE, SHAPE, NUMBERS, AT_RESULT };
enum { TIME, VIEWS, COPIES, UNKNOWN, SIZE, BYTES, DTYPE, EACH };

/* sys.monitoring.events.CALL is 2 to the power of this. */
#define EVENT_CALL 4

/* Bytes from a numpy.ndarray to its address, as in arrays.py. */
#define DATA 16

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *original, *traced, *record, *calls, *tracer, *rows;
    PyObject *ways, *inside, *within;
} Recorder;

/* Where the slots of the class Way are in its objects, and that of a Builtin for its Recorder. */
static Py_ssize_t is_special, is_busy, is_leaf, may_run_own, in_head, address, last, sites, recorder;

static PyTypeObject *recorder_type, *way_type;

/* Names that are asked for in each call. */
static PyObject *dtype_name, *shape_name, *is_cpu_name, *next_s_name, *raised_name;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static int64_t
now_ns(void)
{
    struct timespec now; /* the clock of time.perf_counter */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether the error that is set is the tracer's own: then it is set no more. What the handler of a
   signal raised is the program's, and stays set. */
static int
is_own_failure(Recorder *self)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return 0;
    }
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    PyObject *done = PyObject_CallMethod(self->calls, "raise_of_handler", "O", error);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    Py_XDECREF(done);
    return done != NULL;
}

/* The address of the first element; 0 if it is not known, -1 with an error. */
static int
address_of(PyObject *look, int is_in_head, PyObject *array, uintptr_t *found)
{
    if (is_in_head) {
        *found = *(uintptr_t *)((char *)array + DATA);
        return 0;
    }
    PyObject *number = PyObject_CallOneArg(look, array);
    if (number == NULL) {
        return -1;
    }
    *found = number == Py_None ? 0 : (uintptr_t)PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int
add(PyObject *numbers, Py_ssize_t at, PyObject *more)
{
    PyObject *sum = more == NULL ? NULL : PyNumber_Add(PyList_GET_ITEM(numbers, at), more);
    Py_XDECREF(more);
    return sum == NULL ? -1 : PyList_SetItem(numbers, at, sum);
}

static int
is_attribute(PyObject *array, PyObject *name, PyObject *expected)
{
    PyObject *found = PyObject_GetAttr(array, name);
    Py_XDECREF(found); /* dtypes live on in what was met before */
    return found == NULL ? -1 : found == expected;
}

static int
has_shape(PyObject *array, PyObject *shape)
{
    PyObject *found = PyObject_GetAttr(array, shape_name);
    int is_same = found == NULL ? -1 : PyObject_RichCompareBool(found, shape, Py_EQ);
    Py_XDECREF(found);
    return is_same;
}

/* 1 if the result was not there before, and is apart from the source: a copy like the one before.
   0 if it takes a longer look. */
static int
is_copy_like_before(PyObject *numbers, PyObject *tensor, PyObject *result, uintptr_t here,
                    uintptr_t there, uintptr_t *copied)
{
    *copied = (uintptr_t)PyLong_AsUnsignedLongLong(PyList_GET_ITEM(numbers, EACH));
    uintptr_t size = (uintptr_t)PyLong_AsUnsignedLongLong(PyList_GET_ITEM(numbers, SIZE));
    if (PyErr_Occurred()) {
        return -1;
    }
    if (!*copied || !here || !there || (there < here + size && there + *copied > here)) {
        return 0;
    }
    int is_same = is_attribute(result, dtype_name, PyList_GET_ITEM(numbers, DTYPE));
    return is_same == 1 ? is_attribute(tensor, is_cpu_name, Py_True) : is_same;
}

/* Count a view or a copy that is like the last one at its site. 1 if it was, 0 if it is another,
   -1 with an error. */
static int
counted(PyObject *way, PyObject *site, PyObject *source, PyObject *result, double took,
        int is_alone)
{
    int is_at_result = PyList_GET_ITEM(site, AT_RESULT) == Py_True;
    if ((PyObject *)Py_TYPE(result) != PyList_GET_ITEM(site, MADE) || result == source ||
        (is_at_result && !is_alone)) {
        return 0;
    }
    /* Kept, as another thread may be at this site while an attribute is asked for. */
    PyObject *look = Py_NewRef(PyList_GET_ITEM(site, ADDRESS));
    PyObject *dtype = Py_NewRef(PyList_GET_ITEM(site, KNOWN_DTYPE));
    PyObject *shape = Py_NewRef(PyList_GET_ITEM(site, SHAPE));
    PyObject *numbers = Py_NewRef(PyList_GET_ITEM(site, NUMBERS));
    PyObject *one = is_at_result ? result : source;
    uintptr_t here, there, copied = 0;
    int is_in_head = SLOT(way, in_head) == Py_True, at = VIEWS;
    int found = is_attribute(one, dtype_name, dtype);
    found = found == 1 ? has_shape(one, shape) : found;
    if (found == 1 && (address_of(SLOT(way, address), is_in_head, source, &here) < 0 ||
                       address_of(look, look == Py_None, result, &there) < 0)) {
        found = -1;
    }
    if (found == 1 && (here != there || !here)) {
        PyObject *tensor = is_in_head ? result : source;
        found = is_copy_like_before(numbers, tensor, result, here, there, &copied);
        at = COPIES;
    }
    if (found == 1 && (add(numbers, TIME, PyFloat_FromDouble(took)) < 0 ||
                       add(numbers, at, PyLong_FromLong(1)) < 0 ||
                       (at == COPIES && add(numbers, BYTES, PyLong_FromSize_t(copied)) < 0))) {
        found = -1;
    }
    Py_DECREF(look);
    Py_DECREF(dtype);
    Py_DECREF(shape);
    Py_DECREF(numbers);
    return found;
}

/* The call has ended: count it, and do what is due now and then. -1 if the program is to see an
   error: its signal handlers may raise one. */
static int
ended(Recorder *self, PyObject *way, PyObject *site, PyObject *source, PyObject *result,
      int64_t began_ns, int64_t ended_ns, int is_alone)
{
    double began = (double)began_ns / 1e9, took = (double)(ended_ns - began_ns);
    int is_counted = counted(way, site, source, result, took, is_alone);
    if (is_counted < 0 && !is_own_failure(self)) {
        return -1;
    }
    if (is_counted < 1) {
        PyObject *done = PyObject_CallMethod(self->calls, "ended", "OOOOdO", way, site, source,
                                             result, took, is_alone ? Py_True : Py_False);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    PyObject *next = PyObject_GetAttr(self->rows, next_s_name);
    if (next == NULL) {
        return -1;
    }
    int is_due = began > PyFloat_AsDouble(next);
    Py_DECREF(next);
    if (is_due) {
        PyObject *done = PyObject_CallMethod(self->tracer, "tick", "Odd",
                                             PyList_GET_ITEM(site, ROW), began, took);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 0;
}

/* The call of the program raised: its error stays set. */
static void
note_raised(PyObject *row)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *count = PyObject_GetAttr(row, raised_name), *one = PyLong_FromLong(1);
    PyObject *sum = count && one ? PyNumber_Add(count, one) : NULL;
    if (sum == NULL || PyObject_SetAttr(row, raised_name, sum) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(count);
    Py_XDECREF(one);
    Py_XDECREF(sum);
    PyErr_Restore(type, value, traceback);
}

/* Have Python go on with a call whose array was asked for its queue: the answer is that of now. */
static PyObject *
in_python(Recorder *self, PyObject *way, PyFrameObject *frame, PyObject *const *args, size_t flags,
          PyObject *names, PyObject *busy)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *result = NULL, *kwargs = PyDict_New(), *rest = PyTuple_New(count - 1);
    for (Py_ssize_t at = 1; rest != NULL && at < count; at++) {
        PyTuple_SET_ITEM(rest, at - 1, Py_NewRef(args[at]));
    }
    for (Py_ssize_t at = 0; kwargs != NULL && at < named; at++) {
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, at), args[count + at]) < 0) {
            Py_CLEAR(kwargs);
        }
    }
    if (rest != NULL && kwargs != NULL) {
        result = PyObject_CallFunctionObjArgs(self->record, frame, way, args[0], rest, kwargs,
                                              Py_False, busy, NULL);
    }
    Py_XDECREF(rest);
    Py_XDECREF(kwargs);
    return result;
}

static int
is_at(PyObject *site, PyObject *code, int instruction)
{
    return PyList_GET_ITEM(site, CODE) == code &&
           PyLong_AsLong(PyList_GET_ITEM(site, AT)) == instruction;
}

/* The site of the call, a new reference; NULL if it was not found. */
static PyObject *
site_of(Recorder *self, PyObject *way, PyFrameObject *frame)
{
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    int instruction = PyFrame_GetLasti(frame);
    PyObject *site = Py_NewRef(SLOT(way, last));
    if (!is_at(site, code, instruction)) {
        PyObject *key = PyLong_FromSize_t((uintptr_t)code + instruction);
        PyObject *known = key ? PyDict_GetItemWithError(SLOT(way, sites), key) : NULL;
        Py_XDECREF(key);
        if (known != NULL && is_at(known, code, instruction)) {
            Py_SETREF(site, Py_NewRef(known));
            Py_SETREF(SLOT(way, last), Py_NewRef(known));
        }
        else {
            Py_SETREF(site, PyObject_CallMethod(self->calls, "site", "OO", frame, way));
        }
    }
    Py_DECREF(code);
    return site;
}

/* Mark that this thread is in a traced call, so that no call inside it counts. */
static PyObject *
entered(Recorder *self, PyObject *way)
{
    PyObject *me = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    if (me == NULL || PySet_Add(self->inside, me) < 0 ||
        (SLOT(way, may_run_own) == Py_True && PySet_Add(self->within, me) < 0)) {
        Py_CLEAR(me);
    }
    return me;
}

static void
left(Recorder *self, PyObject *way, PyObject *me)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PySet_Discard(self->inside, me);
    if (SLOT(way, may_run_own) == Py_True) {
        PySet_Discard(self->within, me);
    }
    PyErr_Restore(type, value, traceback);
    Py_DECREF(me);
}

/* Call the original at a site that is known. */
static PyObject *
called(Recorder *self, PyObject *way, PyObject *site, PyObject *const *args, size_t flags,
       PyObject *names)
{
    PyObject *me = NULL, *row = PyList_GET_ITEM(site, ROW);
    if (SLOT(way, is_leaf) != Py_True && (me = entered(self, way)) == NULL) {
        return NULL;
    }
    PyObject *source = Py_NewRef(args[0]);
    int is_alone = PyVectorcall_NARGS(flags) == 1 && (names == NULL || !PyTuple_GET_SIZE(names));
    int64_t began = now_ns();
    PyObject *result = PyObject_Vectorcall(self->original, args, flags, names);
    int64_t end = now_ns();
    if (row == Py_None) {
        ; /* its calls are counted no more */
    }
    else if (result == NULL) {
        note_raised(row);
    }
    else if (ended(self, way, site, source, result, began, end, is_alone) < 0) {
        Py_CLEAR(result);
    }
    Py_DECREF(source);
    if (me != NULL) {
        left(self, way, me);
    }
    return result;
}

/* Call the original and count that. NULL without an error: Python is to do it, nothing was done. */
static PyObject *
recorded(Recorder *self, PyObject *way, PyFrameObject *frame, PyObject *const *args, size_t flags,
         PyObject *names)
{
    if (SLOT(way, is_special) != Py_False) {
        return NULL;
    }
    PyObject *site = site_of(self, way, frame), *busy = NULL, *result = NULL;
    if (site != NULL && SLOT(way, is_busy) != Py_None && PyList_GET_ITEM(site, ROW) != Py_None) {
        busy = PyObject_CallOneArg(SLOT(way, is_busy), args[0]);
    }
    if (busy != NULL && busy != Py_None) {
        result = in_python(self, way, frame, args, flags, names, busy);
    }
    else if (PyErr_Occurred()) {
        is_own_failure(self);
    }
    else {
        result = called(self, way, site, args, flags, names);
    }
    Py_XDECREF(busy);
    Py_XDECREF(site);
    return result;
}

/* Whether a profiler wants to see the original called: no call from C is an event. */
static int
is_profiled(void)
{
    if (PyThreadState_Get()->c_profilefunc != NULL) {
        return 1;
    }
#if PY_VERSION_HEX >= 0x030C0000 /* cProfile and others are tools of sys.monitoring */
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int is_seen =
            code->_co_monitoring != NULL && code->_co_monitoring->active_monitors.tools[EVENT_CALL];
        Py_DECREF(code);
        return is_seen;
    }
#endif
    return 0;
}

/* A Recorder called as record() is: with the frame, the way and the arguments. */
static PyObject *
recorder_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    Recorder *self = (Recorder *)object;
    if (PyVectorcall_NARGS(flags) == 5 && names == NULL && !is_profiled() && PyFrame_Check(args[0]) &&
        Py_IS_TYPE(args[1], way_type) && PyTuple_Check(args[3]) &&
        PyTuple_GET_SIZE(args[3]) == 0 && PyDict_Check(args[4]) && PyDict_GET_SIZE(args[4]) == 0) {
        PyObject *given[] = {NULL, args[2]};
        PyObject *result = recorded(self, args[1], (PyFrameObject *)args[0], given + 1,
                                    1 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    return PyObject_Vectorcall(self->record, args, flags, names);
}

/* What a Builtin does if called, but for what it is without its Recorder. */
static PyObject *
traced_call(Recorder *self, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *way = NULL;
    if (PyVectorcall_NARGS(flags) > 0 && !is_profiled()) {
        way = PyDict_GetItemWithError(self->ways, (PyObject *)Py_TYPE(args[0]));
        if (way == NULL && PyErr_Occurred() && !is_own_failure(self)) { /* of its hash */
            return NULL;
        }
    }
    if (way == Py_None && PySet_GET_SIZE(self->within) == 0) {
        return PyObject_Vectorcall(self->original, args, flags, names);
    }
    PyObject *result = NULL;
    if (way != NULL && way != Py_None && SLOT(way, may_run_own) != Py_True &&
        PySet_GET_SIZE(self->inside) == 0) {
        Py_INCREF(way);
        PyFrameObject *frame = PyEval_GetFrame(); /* may collect garbage */
        if (frame != NULL) {
            result = recorded(self, way, frame, args, flags, names);
        }
        Py_DECREF(way);
    }
    if (result == NULL && !PyErr_Occurred()) {
        result = PyObject_Vectorcall(self->traced, args, flags, names);
    }
    return result;
}

/* A Builtin called by the program. Its slot is the program's to reach, and the collector's. */
static PyObject *
builtin_call(PyObject *builtin, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *self = SLOT(builtin, recorder), *result;
    if (self == NULL || !Py_IS_TYPE(self, recorder_type)) {
        PyObject *traced = PyObject_GetAttrString(builtin, "func");
        result = traced == NULL ? NULL : PyObject_Vectorcall(traced, args, flags, names);
        Py_XDECREF(traced);
        return result;
    }
    Py_INCREF(self);
    result = traced_call((Recorder *)self, args, flags, names);
    Py_DECREF(self);
    return result;
}

static int
recorder_traverse(Recorder *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->original);
    Py_VISIT(self->traced);
    Py_VISIT(self->record);
    Py_VISIT(self->calls);
    Py_VISIT(self->tracer);
    Py_VISIT(self->rows);
    Py_VISIT(self->ways);
    Py_VISIT(self->inside);
    Py_VISIT(self->within);
    return 0;
}

static void
recorder_dealloc(Recorder *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->original);
    Py_XDECREF(self->traced);
    Py_XDECREF(self->record);
    Py_XDECREF(self->calls);
    Py_XDECREF(self->tracer);
    Py_XDECREF(self->rows);
    Py_XDECREF(self->ways);
    Py_XDECREF(self->inside);
    Py_XDECREF(self->within);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
recorder_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *original, *record, *calls;
    if (!PyArg_ParseTuple(args, "OOO:Recorder", &original, &record, &calls)) {
        return NULL;
    }
    Recorder *self = (Recorder *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = recorder_call;
    self->original = Py_NewRef(original);
    self->record = Py_NewRef(record);
    self->traced = Py_NewRef(record); /* until it is attached */
    self->calls = Py_NewRef(calls);
    if (!(self->ways = PyObject_GetAttrString(calls, "ways")) ||
        !(self->within = PyObject_GetAttrString(calls, "within")) ||
        !(self->tracer = PyObject_GetAttrString(calls, "tracer")) ||
        !(self->inside = PyObject_GetAttrString(self->tracer, "inside")) ||
        !(self->rows = PyObject_GetAttrString(self->tracer, "rows"))) {
        Py_CLEAR(self);
    }
    else if (!PyDict_Check(self->ways) || !PyAnySet_Check(self->inside) ||
             !PyAnySet_Check(self->within)) {
        PyErr_SetString(PyExc_TypeError, "these are no calls of a tracer");
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyMemberDef recorder_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Recorder, vectorcall), READONLY},
    {NULL},
};

static PyType_Slot recorder_slots[] = {
    {Py_tp_doc, "What calls a function with an array, and counts it for the line that did."},
    {Py_tp_new, recorder_new},
    {Py_tp_dealloc, recorder_dealloc},
    {Py_tp_traverse, recorder_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, recorder_members},
    {0, NULL},
};

static PyType_Spec recorder_spec = {
    .name = "dlprof.tracer._fast.Recorder",
    .basicsize = sizeof(Recorder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = recorder_slots,
};

/* Call a Builtin here from now on. It goes on in the function that it stands for. */
static PyObject *
attach(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *builtin, *traced;
    Recorder *self;
    if (!PyArg_ParseTuple(args, "OO!O:attach", &builtin, recorder_type, &self, &traced)) {
        return NULL;
    }
    Py_ssize_t offset = Py_TYPE(builtin)->tp_vectorcall_offset;
    if (offset > 0) { /* functools.partial is in C */
        Py_XSETREF(self->traced, Py_NewRef(traced));
        Py_XSETREF(SLOT(builtin, recorder), Py_NewRef(self));
        *(vectorcallfunc *)((char *)builtin + offset) = builtin_call;
    }
    Py_RETURN_NONE;
}

/* Where a slot of a class is in its objects; -1 with an error. */
static Py_ssize_t
offset_of(PyObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL) {
        return -1;
    }
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        offset = ((PyMemberDescrObject *)found)->d_member->offset;
    }
    else {
        PyErr_Format(PyExc_TypeError, "%s is no slot of %R", name, type);
    }
    Py_DECREF(found);
    return offset;
}

/* Learn where the slots of these two classes are. */
static PyObject *
learn(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *way, *builtin;
    if (!PyArg_ParseTuple(args, "OO:learn", &way, &builtin)) {
        return NULL;
    }
    if ((is_special = offset_of(way, "is_special")) < 0 ||
        (is_busy = offset_of(way, "is_busy")) < 0 || (is_leaf = offset_of(way, "is_leaf")) < 0 ||
        (may_run_own = offset_of(way, "may_run_own")) < 0 ||
        (in_head = offset_of(way, "in_head")) < 0 || (address = offset_of(way, "address")) < 0 ||
        (last = offset_of(way, "last")) < 0 || (sites = offset_of(way, "sites")) < 0 ||
        (recorder = offset_of(builtin, "_recorder")) < 0) {
        return NULL;
    }
    Py_XSETREF(way_type, (PyTypeObject *)Py_NewRef(way));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"attach", attach, METH_VARARGS, "Call a Builtin in C from now on."},
    {"learn", learn, METH_VARARGS, "Learn where the slots of Way and Builtin are."},
    {NULL},
};

static int
execute(PyObject *module)
{
    if (!(dtype_name = PyUnicode_InternFromString("dtype")) ||
        !(shape_name = PyUnicode_InternFromString("shape")) ||
        !(is_cpu_name = PyUnicode_InternFromString("is_cpu")) ||
        !(next_s_name = PyUnicode_InternFromString("next_s")) ||
        !(raised_name = PyUnicode_InternFromString("raised"))) {
        return -1;
    }
    recorder_type = (PyTypeObject *)PyType_FromSpec(&recorder_spec);
    return recorder_type ? PyModule_AddObjectRef(module, "Recorder", (PyObject *)recorder_type) : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dlprof.tracer._fast",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__fast(void)
{
    return PyModuleDef_Init(&definition);
}
